"""The wizard without a screen: every step and gate, going back, and tasks on a cluster with their outcomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.launch.run import Run
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.calibration import ClusterResult
from llmb_tui.plan.selection import Overrides
from llmb_tui.preflight.report import NETWORK_VARIABLES, PATH_VARIABLES, Check, Preflight
from llmb_tui.wizard.answers import Answers
from llmb_tui.wizard.effects import (
    AskForApiKeys,
    AskToSubmit,
    EditCluster,
    FocusFirst,
    Install,
    Notify,
    OpenRun,
    Prepare,
    PrepareAhead,
    Probe,
    ReadOwnResults,
    ReadRuns,
    ShowFailure,
    StartIdleTimer,
    Submit,
)
from llmb_tui.wizard.events import (
    Action,
    ActionRequested,
    Answered,
    CheckDone,
    ConnectionChanged,
    EarlyChecked,
    Event,
    FailureDismissed,
    InputIdle,
    LaunchOutput,
    OwnResultsRead,
    Prepared,
    ProfileSaved,
    RunAgain,
    RunsRead,
    RunSubmitted,
    ScreenActive,
    StepsChanged,
    StepSelected,
    SubmitConfirmed,
    TaskEnded,
    TaskEvent,
    TaskFailed,
)
from llmb_tui.wizard.gates import command_line, disabled_actions, mark
from llmb_tui.wizard.site_variables import SiteVariables, site_variables
from llmb_tui.wizard.steps import StepId
from llmb_tui.wizard.update import update
from tests.kit.runs import NEMOTRON as NEMOTRON_64
from tests.kit.runs import PLAN, make_run
from tests.wizard.wizard_states import (
    COMMITS,
    EOS,
    INSTALLED,
    LOST,
    MISSING,
    NEMOTRON,
    NOT_PUBLIC,
    PASSED,
    SELENE,
    Wizard,
    draft_of,
    of_kind,
)

ENTER, NEXT, BACK = ActionRequested("enter"), ActionRequested("next"), ActionRequested("back")
LACKING = (StepState("token", "Hugging Face token", "failed", key_would_help="hugging-face"),)


@pytest.fixture
def wizard(catalog: Catalog) -> Wizard:
    return Wizard(catalog)


class TestSteps:
    def test_first_state_has_a_plan_and_starts_the_idle_timer(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, Answers())
        assert wizard.step() is StepId.WORKLOAD
        assert wizard.state.proposal.plan is not None
        assert wizard.effects == (FocusFirst(), StartIdleTimer(), ReadOwnResults("eos"))

    def test_enter_confirms_the_defaults_of_each_step(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, Answers(), cluster=None)
        for step in (StepId.HARDWARE, StepId.SCALE, StepId.CLUSTER):
            assert FocusFirst() in wizard.send(ENTER)
            assert wizard.step() is step
        answers, full = wizard.state.answers, wizard.state.proposal.full
        assert replace(answers, cluster=None) == replace(full, cluster=None)

    def test_back_is_never_blocked_and_keeps_every_answer(self, wizard: Wizard) -> None:
        wizard.send(StepSelected(StepId.SCALE), Answered("scale", "96"))
        before = wizard.state.answers
        wizard.send(NEXT)
        assert wizard.step() is StepId.SCALE, "an error at this step blocks the next one"
        for step in (StepId.HARDWARE, StepId.WORKLOAD, StepId.WORKLOAD):
            wizard.send(BACK)
            assert wizard.step() is step
        assert wizard.state.answers == before
        wizard.send(StepSelected(StepId.RUN))
        for step in reversed(StepId):
            assert wizard.step() is step
            wizard.send(BACK)

    def test_error_of_the_step_blocks_next_and_is_shown(self, wizard: Wizard) -> None:
        wizard.send(StepSelected(StepId.SCALE), Answered("scale", "96"))
        (message,) = wizard.send(NEXT)
        assert isinstance(message, Notify)
        assert "96" in message.words

    def test_an_error_of_another_step_does_not_block_the_current_step(self, wizard: Wizard) -> None:
        wizard.send(Answered("scale", "96"), NEXT)
        assert wizard.step() is StepId.HARDWARE

    def test_later_steps_can_be_left_with_errors(self, wizard: Wizard) -> None:
        wizard.send(StepSelected(StepId.CLUSTER), NEXT)
        assert wizard.step() is StepId.INSTALL
        wizard.send(NEXT)
        assert wizard.step() is StepId.REVIEW

    def test_jump_forward_confirms_the_defaults_and_jump_back_does_not(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, Answers(), cluster=None)
        wizard.send(StepSelected(StepId.HARDWARE))
        assert wizard.state.answers.size is not None
        wizard.send(StepSelected(StepId.WORKLOAD))
        assert wizard.state.answers.gpu is None

    def test_next_skips_finished_steps(self, wizard: Wizard) -> None:
        wizard.installed().send(StepSelected(StepId.SCALE), NEXT)
        assert wizard.step() is StepId.REVIEW

    def test_same_answer_again_changes_nothing(self, wizard: Wizard) -> None:
        assert update(wizard.state, Answered("scale", "16")) == (wizard.state, ())
        assert update(wizard.state, Answered("cluster", "eos")) == (wizard.state, ())

    def test_invalid_answer_is_kept_and_has_no_plan(self, wizard: Wizard) -> None:
        wizard.send(Answered("time_limit", "1-"))
        assert (wizard.state.proposal.plan, wizard.state.proposal.request) == (None, None)
        assert mark(wizard.state, StepId.SCALE) == "flagged"
        wizard.send(Answered("time_limit", "00:10:00"))
        assert wizard.plan.time_limit == "00:10:00"

    def test_the_choice_is_copied_as_a_command_line(self, wizard: Wizard) -> None:
        words = "llmb-tui submit -w nemotron4@25.04 -s 15b --gpu h100 -d bf16 --scale 16 --cluster eos"
        assert command_line(wizard.state) == words
        wizard.send(Answered("cluster", "gone"))
        assert command_line(wizard.state) == words.replace("submit", "plan").removesuffix(" --cluster eos")
        wizard.send(Answered("cluster", "eos"))
        wizard.send(Answered("time_limit", "1-"))
        assert command_line(wizard.state) == ""


class TestLooks:
    def test_saved_cluster_is_probed_once_without_a_request(self, wizard: Wizard) -> None:
        (probe,) = wizard.send(InputIdle())
        assert probe == Probe(wizard.request, attended=False, early=True)
        assert wizard.state.cluster.link == "connecting"
        wizard.send(ConnectionChanged(wizard.request, "unknown"), TaskEnded(wizard.request, "probe"))
        assert wizard.send(InputIdle()) == ()
        assert wizard.state.cluster.error is None

    @pytest.mark.parametrize("is_late", [False, True])
    def test_cluster_that_answered_is_probed_again_when_chosen_again(self, wizard: Wizard, is_late: bool) -> None:
        connected, away = ConnectionChanged(wizard.request, "connected"), Answered("cluster", "selene")
        wizard.send(InputIdle(), *((away, connected) if is_late else (connected, away)), Answered("cluster", "eos"))
        assert wizard.send(InputIdle()) == (Probe(wizard.request, attended=False, early=True),)
        wizard.send(ConnectionChanged(wizard.request, "unknown"), TaskEnded(wizard.request, "probe"))
        assert wizard.send(InputIdle()) == (), "the cluster does not answer any more"

    def test_no_probe_starts_while_a_task_is_active(self, wizard: Wizard) -> None:
        wizard.send(InputIdle())
        assert wizard.send(InputIdle()) == ()

    def test_no_probe_starts_without_a_cluster_or_a_selection(self, catalog: Catalog) -> None:
        assert Wizard(catalog, cluster=None).send(InputIdle()) == ()
        wizard = Wizard(catalog, replace(NEMOTRON, time_limit="1-"))
        (message,) = wizard.send(InputIdle(), ActionRequested("check"))
        assert message == Notify("The time limit cannot be read. Type HH:MM:SS, such as 00:30:00, or D-HH:MM:SS.")
        wizard.send(Answered("time_limit", ""))
        assert of_kind(wizard.send(InputIdle()), Probe), "the cluster has not been probed yet"

    def test_connected_cluster_is_probed_again_for_new_answers(self, wizard: Wizard) -> None:
        wizard.installed()
        assert of_kind(wizard.send(Answered("scale", "32")), StartIdleTimer)
        cluster = wizard.state.cluster
        assert (cluster.link, cluster.preflight, cluster.steps) == ("connected", None, ())
        assert of_kind(wizard.send(InputIdle()), Probe) == (Probe(wizard.request, attended=False, early=True),)

    def test_requested_probe_replaces_earlier_checks(self, wizard: Wizard) -> None:
        wizard.installed()
        (probe,) = wizard.send(ActionRequested("check"))
        assert probe == Probe(wizard.request, attended=True, early=True)
        cluster = wizard.state.cluster
        assert (cluster.link, cluster.preflight, cluster.steps) == ("connecting", None, ())

    @pytest.mark.parametrize("action", ["install", "submit"])
    def test_check_is_refused_during_an_install_or_a_submission(self, wizard: Wizard, action: str) -> None:
        if action == "install":
            wizard.connected().send(ActionRequested("install"))
        else:
            wizard.at_review().send(SubmitConfirmed(draft_of(wizard.request), 0.0))
        assert wizard.send(ActionRequested("check")) == (
            Notify("An install or a submission is active on this cluster. Check it afterwards."),
        )
        assert wizard.state.cluster.link == "connected"

    def test_check_without_a_cluster_opens_the_editor(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, cluster=None)
        assert wizard.send(ActionRequested("check")) == (EditCluster(None),)
        wizard.send(StepSelected(StepId.CLUSTER))
        assert wizard.send(ENTER) == (EditCluster(None),)

    def test_error_of_a_probe_is_kept_until_the_next_attempt(self, wizard: Wizard) -> None:
        wizard.send(
            ActionRequested("check"),
            ConnectionChanged(wizard.request, "failed"),
            TaskFailed(wizard.request, "probe", LOST),
        )
        wizard.send(TaskEnded(wizard.request, "probe"))
        assert wizard.state.cluster.task_error("probe") is LOST
        assert mark(wizard.state, StepId.CLUSTER) == "flagged"
        wizard.send(ActionRequested("check"))
        assert wizard.state.cluster.error is None
        assert mark(wizard.state, StepId.CLUSTER) == "open"
        assert wizard.state.cluster.unreachable is None

    @pytest.mark.parametrize("user_event", [StepSelected(StepId.REVIEW), Answered("scale", "32")])
    @pytest.mark.parametrize("is_late", [False, True])
    def test_connection_error_is_kept_until_connected(self, wizard: Wizard, user_event: Event, is_late: bool) -> None:
        request = wizard.request
        outcome = (
            ConnectionChanged(request, "failed"),
            TaskFailed(request, "probe", LOST),
            TaskEnded(request, "probe"),
        )
        wizard.send(ActionRequested("check"), *((user_event, *outcome) if is_late else (*outcome, user_event)))
        assert wizard.state.cluster.unreachable is LOST
        assert mark(wizard.state, StepId.CLUSTER) == "flagged"
        wizard.send(ConnectionChanged(wizard.request, "connected"))
        assert wizard.state.cluster.unreachable is None

    def test_connection_error_of_another_cluster_is_ignored(self, wizard: Wizard) -> None:
        earlier = wizard.request
        wizard.send(ActionRequested("check"), Answered("cluster", "selene"), ActionRequested("check"))
        wizard.send(ConnectionChanged(wizard.request, "failed"), TaskFailed(earlier, "probe", LOST))
        assert wizard.state.cluster.unreachable is None

    def test_the_banner_stays_until_another_is_read(self, wizard: Wizard) -> None:
        wizard.send(
            ConnectionChanged(wizard.request, "connected", "Welcome."), ConnectionChanged(wizard.request, "failed")
        )
        assert wizard.state.cluster.banner == "Welcome."

    def test_unchecked_install_is_probed_on_arrival(self, wizard: Wizard) -> None:
        wizard.send(ConnectionChanged(wizard.request, "connected"))
        assert of_kind(wizard.send(StepSelected(StepId.INSTALL)), Probe)
        assert not of_kind(wizard.send(StepSelected(StepId.INSTALL)), Probe), "a probe is active"

    def test_saved_profile_is_chosen_and_probed(self, wizard: Wizard) -> None:
        other = replace(SELENE, name="new")
        effects = wizard.send(ProfileSaved(other))
        assert wizard.request.profile == other
        assert [profile.name for profile in wizard.state.profiles] == ["eos", "new", "selene"]
        assert of_kind(effects, Probe, ReadOwnResults) == (
            ReadOwnResults("new"),
            Probe(wizard.request, attended=True, early=True),
        )

    def test_checks_of_other_procedures_run_once(self, wizard: Wizard) -> None:
        wizard.send(InputIdle(), EarlyChecked(wizard.request, ()))
        assert wizard.send(ActionRequested("check")) == (Probe(wizard.request, attended=True, early=False),)
        wizard.send(Answered("scale", "32"))
        assert wizard.send(ActionRequested("check")) == (Probe(wizard.request, attended=True, early=False),)
        wizard.send(Answered("procedure", "upstream"))
        assert wizard.send(ActionRequested("check")) == (Probe(wizard.request, attended=True, early=True),)


class TestOtherRequests:
    """Events for a request that is not the current one any more."""

    @pytest.mark.parametrize("change", [Answered("scale", "32"), Answered("procedure", "upstream")])
    def test_new_selection_or_procedure_keeps_only_the_connection(self, wizard: Wizard, change: Answered) -> None:
        wizard.at_review().send(change)
        assert wizard.state.cluster == wizard.state.cluster.of_connection()
        assert wizard.state.cluster.link == "connected"

    def test_new_cluster_drops_the_connection(self, wizard: Wizard) -> None:
        effects = wizard.installed().send(Answered("cluster", "selene"))
        assert wizard.state.cluster.link == "unknown"
        assert ReadOwnResults("selene") in effects
        assert of_kind(wizard.send(InputIdle()), Probe)
        wizard.send(Answered("cluster", "gone"))
        assert (wizard.state.cluster.link, wizard.state.proposal.profile) == ("none", None)

    def test_facts_for_an_earlier_request_are_ignored(self, wizard: Wizard) -> None:
        earlier = wizard.installed().request
        draft = draft_of(earlier)
        wizard.send(Answered("scale", "32"))
        state = wizard.state
        reports: tuple[TaskEvent, ...] = (
            CheckDone(earlier, PASSED, is_complete=True),
            CheckDone(earlier, PASSED, is_complete=False),
            StepsChanged(earlier, INSTALLED),
            Prepared(earlier, draft),
            TaskFailed(earlier, "install", LOST),
            TaskEnded(earlier, "install"),
        )
        assert wizard.send(*reports) == ()
        assert wizard.state is state

    def test_connection_for_an_earlier_request_is_kept_and_starts_a_probe(self, wizard: Wizard) -> None:
        wizard.send(InputIdle())
        earlier = wizard.request
        wizard.send(Answered("scale", "32"))
        assert wizard.send(ConnectionChanged(earlier, "connected", "Welcome.")) == (StartIdleTimer(),)
        assert (wizard.state.cluster.link, wizard.state.cluster.banner) == ("connected", "Welcome.")
        assert of_kind(wizard.send(InputIdle()), Probe) == (Probe(wizard.request, attended=False, early=True),)

    def test_connection_of_another_cluster_is_ignored(self, wizard: Wizard) -> None:
        earlier = wizard.request
        wizard.send(Answered("cluster", "selene"))
        assert wizard.send(ConnectionChanged(earlier, "connected")) == ()
        assert wizard.state.cluster.link == "unknown"

    def test_new_problems_do_not_change_the_request(self, wizard: Wizard) -> None:
        wizard.send(Answered("procedure", "upstream"), ActionRequested("check"))
        earlier = wizard.request
        refused = replace(COMMITS, status="failed")
        wizard.send(EarlyChecked(earlier, (refused,)), CheckDone(earlier, PASSED, is_complete=True))
        assert not wizard.plan.launchable
        assert wizard.state.cluster.preflight is PASSED

    def test_restored_answers_keep_only_the_connection(self, wizard: Wizard) -> None:
        wizard.installed().send(Answered("scale", "32"), Answered("scale", "16"))
        assert wizard.state.cluster == wizard.state.cluster.of_connection()


class TestInstall:
    def test_enter_installs_and_continues_once_complete(self, wizard: Wizard) -> None:
        wizard.connected().send(StepSelected(StepId.INSTALL))
        assert wizard.send(ENTER) == (Install(wizard.request),)
        assert wizard.send(ENTER, ActionRequested("install")) == (), "the install is active"
        wizard.send(StepsChanged(wizard.request, INSTALLED), TaskEnded(wizard.request, "install"))
        wizard.send(ENTER)
        assert wizard.step() is StepId.REVIEW

    @pytest.mark.parametrize(("field", "other"), [("scale", "32"), ("cluster", "selene")])
    def test_active_install_is_remembered_for_its_request(self, wizard: Wizard, field: str, other: str) -> None:
        wizard.connected().send(ActionRequested("install"))
        mine, before = wizard.request, getattr(wizard.state.answers, field)
        wizard.send(Answered(field, other))
        assert "install" not in wizard.state.cluster.tasks, "the install belongs to another request"
        wizard.send(Answered(field, str(before)))
        assert of_kind(wizard.send(ActionRequested("install")), Install) == ()
        if field == "scale":
            assert wizard.state.cluster.installing
        wizard.send(TaskEnded(mine, "install"))
        assert not wizard.state.cluster.installing
        assert of_kind(wizard.connected().send(ActionRequested("install")), Install) == (Install(mine),)

    def test_install_needs_a_cluster_and_a_launchable_selection(self, catalog: Catalog) -> None:
        for wizard, why in (
            (Wizard(catalog, cluster=None), "Choose a cluster first (step 4)."),
            (Wizard(catalog, replace(NEMOTRON, scale=96)), "Choose a listed scale: 64 or 128 GPUs."),
        ):
            (message,) = of_kind(wizard.send(ActionRequested("install")), Notify, Install)
            assert isinstance(message, Notify)
            assert why in message.words

    def test_step_without_its_api_key_opens_the_key_dialog(self, wizard: Wizard) -> None:
        wizard.connected().send(ActionRequested("install"), StepsChanged(wizard.request, LACKING))
        first, *_ = wizard.send(TaskEnded(wizard.request, "install"))
        assert first == AskForApiKeys(wizard.request, "hugging-face")
        assert wizard.send(ActionRequested("keys")) == (AskForApiKeys(wizard.request, "hugging-face"),)

    def test_no_api_key_is_requested_on_another_screen(self, wizard: Wizard) -> None:
        wizard.connected().send(ActionRequested("install"), StepsChanged(wizard.request, LACKING), ScreenActive(False))
        assert of_kind(wizard.send(TaskEnded(wizard.request, "install")), AskForApiKeys) == ()

    def test_probe_that_a_task_delayed_starts_after_the_task(self, wizard: Wizard) -> None:
        wizard.connected().send(Answered("scale", "32"), StepSelected(StepId.REVIEW))
        assert "prepare" in wizard.state.cluster.tasks
        assert wizard.send(InputIdle()) == ()
        assert StartIdleTimer() in wizard.send(TaskEnded(wizard.request, "prepare"))
        assert of_kind(wizard.send(InputIdle()), Probe)

    def test_api_keys_need_a_request(self, wizard: Wizard, catalog: Catalog) -> None:
        assert wizard.send(ActionRequested("keys")) == (AskForApiKeys(wizard.request, None),)
        assert Wizard(catalog, cluster=None).send(ActionRequested("keys")) == ()

    def test_site_variables_are_offered_after_a_check(self, wizard: Wizard) -> None:
        assert site_variables(wizard.state) == Notify(
            "The cluster has not been checked yet. Press c to connect and check it."
        )
        wizard.connected()
        assert site_variables(wizard.state) == Notify(
            "A login shell on this cluster sets no variable that jobs lack.", "information"
        )
        network, paths = (("NCCL_IB_HCA", "mlx5_0"),), (("LD_LIBRARY_PATH", "/opt/lib"),)
        checks = (
            Check(NETWORK_VARIABLES, "Site's variables", "warning", "", "", "", variables=network),
            Check(PATH_VARIABLES, "Site's paths", "ok", "", "", "", variables=paths),
        )
        wizard.send(CheckDone(wizard.request, Preflight(checks), is_complete=True))
        assert site_variables(wizard.state) == SiteVariables(wizard.request.profile, network, paths)

    def test_install_error_is_kept_until_the_next_attempt(self, wizard: Wizard) -> None:
        wizard.connected().send(ActionRequested("install"), TaskFailed(wizard.request, "install", LOST))
        wizard.send(TaskEnded(wizard.request, "install"))
        assert wizard.state.cluster.task_error("install") is LOST
        wizard.send(ActionRequested("install"))
        assert wizard.state.cluster.error is None


class TestReadOnly:
    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        return Wizard(catalog, profiles=(replace(EOS, read_only=True),))

    def test_read_only_cluster_is_probed_but_not_changed(self, wizard: Wizard) -> None:
        assert of_kind(wizard.send(InputIdle()), Probe)
        wizard.connected().send(StepSelected(StepId.INSTALL))
        assert disabled_actions(wizard.state) == {"install", "keys"}
        for action in (ENTER, ActionRequested("install"), ActionRequested("keys")):
            assert wizard.send(action) == (Notify("The cluster is read-only. Change the profile."),)

    def test_run_on_a_read_only_cluster_is_shown_but_not_submitted(self, wizard: Wizard) -> None:
        wizard.at_review()
        assert disabled_actions(wizard.state) == {"submit"}
        message = (Notify("The cluster is read-only. Change the profile."),)
        assert wizard.send(ENTER) == wizard.send(ActionRequested("submit")) == message


class TestReview:
    def test_the_script_is_made_once(self, wizard: Wizard) -> None:
        wizard.installed()
        assert wizard.send(StepSelected(StepId.REVIEW)) == (FocusFirst(), Prepare(wizard.request))
        assert wizard.send(StepSelected(StepId.REVIEW)) == (FocusFirst(),), "the script is being made"
        wizard.send(Prepared(wizard.request, draft_of(wizard.request)), TaskEnded(wizard.request, "prepare"))
        assert wizard.send(StepSelected(StepId.REVIEW)) == (FocusFirst(),), "the script exists"

    def test_no_script_is_made_for_an_unlaunchable_plan(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, replace(NEMOTRON, scale=96))
        assert wizard.send(StepSelected(StepId.REVIEW)) == (FocusFirst(),)
        (message,) = wizard.send(ENTER)
        assert isinstance(message, Notify)
        assert wizard.send(ActionRequested("submit")) == (message,)

    def test_unfinished_step_is_named(self, wizard: Wizard) -> None:
        wizard.at_review().send(StepsChanged(wizard.request, MISSING))
        assert wizard.send(ENTER) == (Notify("The installation is incomplete. Finish step 5 first."),)

    def test_submission_needs_a_confirmation(self, wizard: Wizard) -> None:
        wizard.at_review()
        draft = wizard.state.cluster.prepared
        assert draft is not None
        assert wizard.send(ENTER) == wizard.send(ActionRequested("submit")) == (AskToSubmit(draft, ""),)
        assert wizard.send(SubmitConfirmed(draft, 7.0)) == (Submit(draft, PASSED, INSTALLED),)
        assert wizard.state.launch is not None
        assert (wizard.state.launch.run, wizard.state.launch.since) == (draft.run, 7.0)

    def test_one_submission_at_a_time(self, wizard: Wizard) -> None:
        wizard.at_review()
        agreed = SubmitConfirmed(draft_of(wizard.request), 0.0)
        wizard.send(agreed)
        (message,) = wizard.send(agreed)
        assert isinstance(message, Notify)
        assert wizard.send(ActionRequested("submit")) == (message,)
        wizard.send(Answered("scale", "32"), StepSelected(StepId.REVIEW))
        (message,) = wizard.send(ENTER)
        assert isinstance(message, Notify)
        assert "Another run is being submitted" in message.words


class TestScriptAhead:
    """The script is made before Review is shown, once the cluster is connected."""

    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        wizard = Wizard(catalog)
        wizard.send(InputIdle())
        return wizard

    def script(self, wizard: Wizard) -> None:
        wizard.send(Prepared(wizard.request, draft_of(wizard.request)), TaskEnded(wizard.request, "prepare ahead"))

    def test_script_is_made_once_per_selection(self, wizard: Wizard) -> None:
        connected = ConnectionChanged(wizard.request, "connected")
        assert of_kind(wizard.send(connected, connected), PrepareAhead) == (PrepareAhead(wizard.request),)
        self.script(wizard)
        again = wizard.send(
            StepSelected(StepId.REVIEW), BACK, StepSelected(StepId.REVIEW), ActionRequested("check"), connected
        )
        assert not of_kind(again, Prepare, PrepareAhead)
        assert wizard.state.cluster.prepared is not None

    def test_new_selection_drops_the_script_and_makes_another(self, wizard: Wizard) -> None:
        wizard.send(ConnectionChanged(wizard.request, "connected"))
        earlier = wizard.request
        wizard.send(Answered("scale", "32"), InputIdle(), Prepared(earlier, draft_of(earlier)))
        assert wizard.state.cluster.prepared is None
        message = wizard.send(ConnectionChanged(wizard.request, "connected"))
        assert message == (PrepareAhead(wizard.request),) != (PrepareAhead(earlier),)

    def test_script_ahead_needs_a_connection_and_a_launchable_plan(self, wizard: Wizard) -> None:
        assert wizard.send(ConnectionChanged(wizard.request, "failed")) == ()
        wizard.send(Answered("scale", "96"), InputIdle())
        assert wizard.send(ConnectionChanged(wizard.request, "connected")) == ()

    def test_script_ahead_keeps_an_earlier_error(self, wizard: Wizard) -> None:
        wizard.send(TaskFailed(wizard.request, "probe", LOST), ConnectionChanged(wizard.request, "connected"))
        assert wizard.state.cluster.task_error("probe") is LOST

    def test_review_waits_for_the_script_ahead(self, wizard: Wizard) -> None:
        wizard.send(ConnectionChanged(wizard.request, "connected"))
        assert not of_kind(wizard.send(StepSelected(StepId.REVIEW)), Prepare)
        assert wizard.state.cluster.preparing
        self.script(wizard)
        assert not wizard.state.cluster.preparing

    def test_a_script_that_failed_ahead_is_rendered_again_at_review(self, wizard: Wizard) -> None:
        ended = TaskEnded(wizard.request, "prepare ahead")
        assert wizard.send(ConnectionChanged(wizard.request, "connected"), ended) == (PrepareAhead(wizard.request),)
        assert wizard.send(StepSelected(StepId.REVIEW)) == (FocusFirst(), Prepare(wizard.request))

    def test_a_script_ahead_that_fails_at_review_is_rendered_again(self, wizard: Wizard) -> None:
        wizard.send(ConnectionChanged(wizard.request, "connected"), StepSelected(StepId.REVIEW))
        assert wizard.send(TaskEnded(wizard.request, "prepare ahead")) == (Prepare(wizard.request),)
        assert wizard.send(TaskEnded(wizard.request, "prepare")) == ()

    @pytest.mark.parametrize("action", ["enter", "submit"])
    def test_a_failed_script_is_rendered_again_on_request(self, wizard: Wizard, action: Action) -> None:
        wizard.installed().send(StepSelected(StepId.REVIEW))
        assert wizard.send(ActionRequested(action)) == (), "the script is being made"
        wizard.send(TaskFailed(wizard.request, "prepare", LOST), TaskEnded(wizard.request, "prepare"))
        assert wizard.send(ActionRequested(action)) == (Prepare(wizard.request),)
        assert wizard.state.cluster.error is None
        wizard.send(Prepared(wizard.request, draft_of(wizard.request)), TaskEnded(wizard.request, "prepare"))
        assert of_kind(wizard.send(ActionRequested(action)), AskToSubmit), "submission needs a confirmation"


class TestSubmission:
    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        """A submission in progress, at Review."""
        wizard = Wizard(catalog).at_review()
        wizard.send(SubmitConfirmed(draft_of(wizard.request), 0.0))
        return wizard

    def test_submitted_run_opens_at_review(self, wizard: Wizard) -> None:
        run = replace(draft_of(wizard.request).run, submission="submitted")
        assert of_kind(wizard.send(RunSubmitted(wizard.request, run)), OpenRun) == (OpenRun(run.id),)
        wizard.send(TaskEnded(wizard.request, "submit"))
        assert (wizard.state.step, wizard.state.launch) == (StepId.RUN, None)
        assert wizard.send(ENTER) == (OpenRun(run.id),)
        wizard.send(StepSelected(StepId.REVIEW), ENTER)
        assert wizard.step() is StepId.RUN, "a submitted run is not submitted again"
        assert of_kind(wizard.send(ActionRequested("submit")), AskToSubmit, Submit, Prepare) == ()

    @pytest.mark.parametrize("gone", [StepSelected(StepId.SCALE), ScreenActive(False), Answered("scale", "32")])
    def test_outcome_is_a_message_after_leaving_review(
        self, wizard: Wizard, gone: StepSelected | ScreenActive | Answered
    ) -> None:
        request, run = wizard.request, replace(draft_of(wizard.request).run, submission="submitted", job_ids=("7",))
        wizard.send(gone)
        step = wizard.step()
        message, read, *_ = wizard.send(RunSubmitted(request, run), TaskEnded(request, "submit"))
        words = f"Run {run.id} on eos, job 7: submitted (J: list runs)"
        assert message == Notify(words, "information")
        assert isinstance(read, ReadRuns)
        assert (wizard.state.step, wizard.state.launch) == (step, None)

    def test_unknown_submission_is_reported(self, wizard: Wizard) -> None:
        request, run = wizard.request, replace(draft_of(wizard.request).run, submission="unknown")
        (message, *_) = wizard.send(ScreenActive(False), RunSubmitted(request, run))[-3:]
        assert isinstance(message, Notify)
        assert "unknown whether" in message.words

    def test_launch_output_is_kept_after_a_new_answer(self, wizard: Wizard) -> None:
        request = wizard.request
        wizard.send(Answered("scale", "32"), LaunchOutput(request, "Importing NeMo"))
        assert wizard.state.launch is not None
        assert wizard.state.launch.last_line == "Importing NeMo"

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_failure_is_shown_and_a_rejected_run_is_prepared_again(self, wizard: Wizard, elsewhere: bool) -> None:
        request = wizard.request
        if elsewhere:
            wizard.send(Answered("scale", "32"))
        effects = wizard.send(TaskFailed(request, "submit", LOST, run_ended=True), TaskEnded(request, "submit"))
        assert effects == (ShowFailure(LOST),)
        assert wizard.state.launch is None
        assert wizard.state.cluster.prepared is None
        assert wizard.send(FailureDismissed()) == (Prepare(wizard.request),)

    def test_run_that_was_not_rejected_is_kept(self, wizard: Wizard) -> None:
        wizard.send(TaskFailed(wizard.request, "submit", LOST), TaskEnded(wizard.request, "submit"))
        assert wizard.state.cluster.prepared is not None
        assert wizard.send(FailureDismissed()) == ()
        assert of_kind(wizard.send(ENTER), AskToSubmit)

    def test_another_run_starts_over_with_the_same_answers(self, wizard: Wizard) -> None:
        run = replace(draft_of(wizard.request).run, submission="submitted")
        wizard.send(RunSubmitted(wizard.request, run), TaskEnded(wizard.request, "submit"))
        answers = wizard.state.answers
        assert wizard.send(ActionRequested("again")) == (FocusFirst(), PrepareAhead(wizard.request)), (
            "the script is made again"
        )
        assert (wizard.state.step, wizard.state.answers) == (StepId.WORKLOAD, answers)
        wizard.send(TaskEnded(wizard.request, "prepare ahead"))
        assert of_kind(wizard.send(StepSelected(StepId.REVIEW)), Prepare)


class TestReadings:
    def test_return_to_the_wizard_reads_runs_and_results(self, wizard: Wizard) -> None:
        assert wizard.send(ScreenActive(False), ScreenActive(True)) == (ReadRuns(None), ReadOwnResults("eos"))

    def test_only_the_launched_run_is_updated(self, wizard: Wizard) -> None:
        run = draft_of(wizard.request).run
        wizard.send(RunsRead((run,), run))
        assert (wizard.state.active_runs, wizard.state.cluster.launched) == ((run,), None)
        wizard.send(RunSubmitted(wizard.request, run))
        newer = replace(run, job_state="COMPLETED")
        wizard.send(RunsRead((), newer))
        assert wizard.state.cluster.launched is newer
        wizard.send(RunsRead((), replace(run, id="other")))
        assert wizard.state.cluster.launched is newer

    def test_only_results_of_the_chosen_cluster_are_used(self, wizard: Wizard) -> None:
        result = ClusterResult("run-a", wizard.plan, 2.5, 0.0, "direct", "our script")
        seen = []
        for event in (
            OwnResultsRead("selene", (result,)),
            OwnResultsRead("eos", (result,)),
            Answered("cluster", "selene"),
        ):
            wizard.send(event)
            seen.append(wizard.state.measured.step_time_s if wizard.state.measured else None)
        assert seen == [None, 2.5, None]
        assert wizard.state.results == ()

    def test_run_has_nothing_to_open_before_a_submission(self, wizard: Wizard) -> None:
        wizard.send(StepSelected(StepId.RUN))
        assert wizard.send(ENTER) == ()


class TestCommits:
    """Commits that are not public are an objection to NVIDIA's scripts on a cluster."""

    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        wizard = Wizard(catalog)
        wizard.send(StepSelected(StepId.SCALE), EarlyChecked(wizard.request, (replace(COMMITS, status="failed"),)))
        return wizard

    def test_the_blocker_of_a_procedure_is_known_before_it_is_chosen(self, wizard: Wizard) -> None:
        assert wizard.against() == (NOT_PUBLIC,)
        assert wizard.plan.launchable
        wizard.send(Answered("procedure", "upstream"))
        assert NOT_PUBLIC in wizard.plan.problems
        assert mark(wizard.state, StepId.SCALE) == "flagged"

    def test_objection_outlives_new_answers_for_the_recipe_and_cluster(self, wizard: Wizard) -> None:
        wizard.send(Answered("scale", "32"))
        assert wizard.against() == (NOT_PUBLIC,)
        wizard.send(Answered("workload", "grok1@25.02/314b"))
        assert wizard.against() == ()
        wizard.send(Answered("workload", "nemotron4@25.04/15b"))
        assert wizard.against() == (NOT_PUBLIC,)
        wizard.send(Answered("cluster", "selene"))
        assert wizard.against() == ()

    def test_only_a_passed_check_removes_an_objection(self, wizard: Wizard) -> None:
        wizard.send(EarlyChecked(wizard.request, (replace(COMMITS, status="warning"),)))
        assert wizard.against() == (NOT_PUBLIC,)
        wizard.send(EarlyChecked(wizard.request, (COMMITS,)))
        assert wizard.against() == ()

    def test_install_step_can_raise_an_objection(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, replace(NEMOTRON, procedure="upstream"))
        wizard.send(StepsChanged(wizard.request, (StepState("commits", "Commits", "failed"),)))
        assert NOT_PUBLIC in wizard.plan.problems

    def test_objection_for_an_earlier_request_is_kept(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog)
        earlier = wizard.request
        wizard.send(StepSelected(StepId.SCALE), Answered("scale", "32"))
        wizard.send(EarlyChecked(earlier, (replace(COMMITS, status="failed"),)))
        assert wizard.against() == (NOT_PUBLIC,)


class TestRunAgain:
    def run(self, **changes: Any) -> Run:
        return make_run("before", plan=replace(PLAN, selection=replace(NEMOTRON_64, **changes)))

    def test_run_again_answers_every_question(self, wizard: Wizard) -> None:
        chosen = replace(NEMOTRON_64, steps=60, overrides=Overrides(tp=4))
        effects = wizard.at_review().send(RunAgain(make_run("before", plan=replace(PLAN, selection=chosen))))
        assert wizard.state.proposal.selection == chosen
        assert (wizard.step(), wizard.state.answers.cluster) == (StepId.SCALE, "eos")
        assert wizard.state.cluster.prepared is None
        assert [effect.words for effect in effects if isinstance(effect, Notify)] == [
            "Settings of run before. Change any of them, then submit."
        ]
        wizard.send(Answered("scale", "128"))
        assert wizard.plan.selection == replace(chosen, scale=128)

    def test_run_again_with_equal_answers_prepares_a_new_run(self, wizard: Wizard) -> None:
        wizard.at_review()
        wizard.send(RunAgain(make_run("before", plan=wizard.plan)))
        assert wizard.state.cluster.prepared is None
        assert wizard.busy("prepare ahead")

    @pytest.mark.parametrize("changes", [{"release": "1.0"}, {"workload": "gone"}, {"size": "1b"}, {"gpu": "h100x"}])
    def test_run_again_without_a_preset_changes_nothing(self, wizard: Wizard, changes: dict[str, str]) -> None:
        before = wizard.state
        (message,) = wizard.send(RunAgain(self.run(**changes)))
        assert wizard.state is before
        assert isinstance(message, Notify)
        assert "cannot be run again: no preset has" in message.words

    @pytest.mark.parametrize(
        ("changes", "words"),
        [({"cluster": "gone"}, "cluster gone is no longer saved"), ({"procedure": "llmb"}, "instead of llmb-run")],
    )
    def test_run_again_names_a_setting_that_differs(self, wizard: Wizard, changes: Any, words: str) -> None:
        effects = wizard.send(RunAgain(replace(self.run(), **changes)))
        assert [words in effect.words for effect in effects if isinstance(effect, Notify)] == [True]
        assert wizard.plan.selection == NEMOTRON_64
