"""Adding variables of a login shell to the profile: one confirmation for network variables, one per path."""

from __future__ import annotations

from llmb_tui.preflight.report import NETWORK_VARIABLES, PATH_VARIABLES, Check, Preflight
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.wizard.state import ClusterState
from tests.kit.pilot import SIZE, at_scale, know, on_screen, on_top, until
from tests.ui.wizard.found_states import EOS

CHECKS = Preflight(
    (
        Check(NETWORK_VARIABLES, "Site's variables", "warning", "", "", "", variables=(("NCCL_IB_HCA", "mlx5_0"),)),
        Check(PATH_VARIABLES, "Site's paths", "ok", "", "", "", variables=(("LD_LIBRARY_PATH", "/opt/[red]lib"),)),
    )
)


async def test_each_variable_is_confirmed_and_only_confirmed_ones_are_saved(services: Services) -> None:
    services.clusters.save(EOS)
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("4")
        await know(pilot, wizard, ClusterState(link="connected", preflight=CHECKS))
        await pilot.press("v")
        await on_top(pilot, ConfirmDialog)
        assert "NCCL_IB_HCA=mlx5_0" in on_screen(app)
        await pilot.press("y")
        await until(pilot, lambda: "LD_LIBRARY_PATH" in on_screen(app), "the second question")
        assert "/opt/[red]lib" in on_screen(app)
        assert "also applies in the container" in on_screen(app)
        await pilot.press("n")
        await until(pilot, lambda: services.clusters.profile(EOS.name).env, "the saved variables")
    assert services.clusters.profile(EOS.name).env == (*EOS.env, ("NCCL_IB_HCA", "mlx5_0"))
