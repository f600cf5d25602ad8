"""Checks of the login node and of the hosts that it reaches, from the output of its commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.answers.cluster_check import summary
from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.text import clean_line
from llmb_tui.preflight.check_group import Answers, CommandChecks, clean_check
from llmb_tui.preflight.login_node import login_node_checks, login_node_group
from llmb_tui.preflight.needs import Needs, Sources
from llmb_tui.preflight.network import network_checks, network_group, servers_in_use
from llmb_tui.preflight.report import Check, Preflight
from tests.cluster.examples import PLAN, PROFILE
from tests.cluster.facts import DF, INODES, LOGIN_NODE, NETWORK

RECIPES = "https://github.com/NVIDIA/dgxc-benchmarking.git"
DIRECT = Needs(PROFILE, PLAN, image="/lustre/llmb/images/x.sqsh", python="3.10.12")
PUBLISHED = replace(DIRECT, venv=True, repository=RECIPES, hub=True)
QUOTA = (
    "Disk quotas for user me (uid 1000): \n"
    "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
    "         /dev/x 1 2 3 4 5 6\n"
    "         lustre {used}  0 100000000           {files}   0 200000        \n"
)
LFS = "/lustre/a_b {used} 90000000 100000000 - {files} 150000 200000 -\n"


def checks(
    changes: dict[str, Answer] | None = None, needs: Needs = DIRECT, profile: SlurmProfile = PROFILE
) -> dict[str, Check]:
    found = [
        clean_check(check)
        for check in login_node_checks({**LOGIN_NODE, **(changes or {})}, replace(needs, profile=profile))
    ]
    return {check.id: check for check in found}


def reach(
    changes: dict[str, Answer] | None = None, needs: Needs = DIRECT, profile: SlurmProfile = PROFILE
) -> dict[str, Check]:
    found = [
        clean_check(check) for check in network_checks({**NETWORK, **(changes or {})}, replace(needs, profile=profile))
    ]
    return {check.id: check for check in found}


def free(gb: float) -> dict[str, Answer]:
    return {"df": Answer(0, DF.format(int(gb * 1e9 / 1024)))}


@pytest.mark.parametrize("needs", [DIRECT, PUBLISHED, Needs(PROFILE)])
def test_a_good_login_node_passes_without_a_word_of_advice(needs: Needs) -> None:
    found = {**checks(needs=needs), **reach(needs=needs)}
    assert {check.status for check in found.values()} == {"ok"}
    assert (
        found["python"].found
        == "python3.12 3.12.4; python3 3.9.18, without venv; module python/3.11.4; module python/3.13"
    )
    assert found["enroot"].found == "enroot 3.5.0; TEMP_PATH /raid/tmp; ROOTFS_WRITABLE yes; REMAP_ROOT y"
    settings = "hook 50-slurm-pytorch.sh, ENROOT_REMAP_ROOT, ENROOT_ROOTFS_WRITABLE, network adapters"
    assert found["enroot-settings"].found == f"{settings} in /etc/enroot of the login node"
    assert found["git"].found == "reached (git ls-remote)"


@pytest.mark.parametrize(
    ("changes", "needs", "check", "status", "words"),
    [
        ({"install": Answer(0, "/lustre\nread-only\n")}, DIRECT, "install-dir", "failed", "write"),
        ({"install": Answer(-1, "")}, DIRECT, "install-dir", "failed", "may hang"),
        (free(3), DIRECT, "disk", "failed", "Free some space"),
        (free(30), DIRECT, "disk", "warning", "may not be enough"),
        (free(65), PUBLISHED, "disk", "warning", "may not be enough"),
        (free(12), replace(PUBLISHED, environment_gb=9.5), "disk", "failed", "Free some space"),
        ({"df": Answer(1, "df: hung\n")}, DIRECT, "disk", "warning", "check it yourself"),
        ({"inodes": Answer(0, INODES.format(50_000))}, PUBLISHED, "inodes", "failed", "Remove files"),
        (
            {"quota": Answer(0, QUOTA.format(used=99_000_000, files=1))},
            DIRECT,
            "quota",
            "failed",
            "ask for a larger quota",
        ),
        ({"quota": Answer(0, QUOTA.format(used=70_000_000, files=1))}, DIRECT, "quota", "warning", "may not be enough"),
        (
            {"quota": Answer(0, QUOTA.format(used=1, files=150_000))},
            PUBLISHED,
            "quota",
            "failed",
            "ask for a larger quota",
        ),
        (
            {"lfs": Answer(0, LFS.format(used="99000000*", files=1))},
            DIRECT,
            "quota",
            "failed",
            "ask for a larger quota",
        ),
        (
            {"enroot": Answer(127, "sh: enroot: not found\n")},
            DIRECT,
            "enroot",
            "warning",
            "A job in partition batch",
        ),
        (
            {"enroot": Answer(1, "mkdir: cannot create directory '/opt/dlami': Permission denied\n")},
            DIRECT,
            "enroot",
            "warning",
            "A job in partition batch",
        ),
        ({"enroot": Answer(0, "3.5.0\nunread\n")}, DIRECT, "enroot-settings", "warning", "not NVIDIA's script"),
        ({"enroot": Answer(0, "3.5.0\nno_temp /raid/tmp\n")}, DIRECT, "enroot-space", "failed", "ENROOT_TEMP_PATH"),
        (
            {"install": Answer(0, "/lustre/llmb\nwritable\nme 7\nis 7 2775 me . project x\n")},
            DIRECT,
            "install-dir",
            "warning",
            "group_writable",
        ),
        (
            {"enroot": Answer(0, f"3.5.0\nfree {3 * 10**6} /tmp\n")},
            DIRECT,
            "enroot-space",
            "failed",
            "ENROOT_TEMP_PATH",
        ),
        (
            {"enroot": Answer(0, f"3.5.0\nfree {3 * 10**7} /tmp\n")},
            DIRECT,
            "enroot-space",
            "warning",
            "ENROOT_TEMP_PATH",
        ),
        (
            {"python": Answer(0, "python python3 3.9.18\n"), "modules": Answer(1, "")},
            PUBLISHED,
            "python",
            "failed",
            "install uv",
        ),
        (
            {"python": Answer(0, "bare python3 3.12.1\n"), "modules": Answer(1, "")},
            PUBLISHED,
            "python",
            "failed",
            "3.10.12",
        ),
    ],
)
def test_each_fault_of_the_login_node_is_found_with_its_remedy(
    changes: dict[str, Answer], needs: Needs, check: str, status: str, words: str
) -> None:
    found = checks(changes, needs)[check]
    assert (found.status, words in found.fix) == (status, True), found


@pytest.mark.parametrize(
    "text",
    ["python python3 3.11.2\n", "bare python3 3.12.1\ntool uv\n", "tool conda\n"],
)
def test_any_way_to_a_python_environment_will_do(text: str) -> None:
    assert checks({"python": Answer(0, text), "modules": Answer(1, "")}, PUBLISHED)["python"].status == "ok"


def test_the_environment_counts_towards_disk_space_until_it_exists() -> None:
    needs = replace(PUBLISHED, environment_gb=9.5)
    needed = checks(needs=needs)["disk"].needed
    assert needed == "14.5 GB to 69.5 GB for a container image and a Python environment (measured: 9.5 GB)"
    there = {"image": Answer(0, ""), "set_up": Answer(0, ""), "inodes": Answer(0, INODES.format(50_000)), **free(2)}
    by_id = checks(there, needs)
    assert (by_id["disk"].status, by_id["disk"].needed) == ("ok", "1 GB for runs")
    assert "inodes" not in by_id


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        ("site /etc/enroot", "warning", "no hook 50-slurm-pytorch.sh, no ENROOT_REMAP_ROOT"),
        (
            "hook\nENROOT_REMAP_ROOT yes\nadapters x",
            "warning",
            "no ENROOT_ROOTFS_WRITABLE on the login node, which",
        ),
        ("hook\nENROOT_REMAP_ROOT yes\nENROOT_ROOTFS_WRITABLE y", "warning", "no network adapters on"),
        ("hook\nENROOT_REMAP_ROOT yes\nENROOT_ROOTFS_WRITABLE y\nadapters NCCL_IB_HCA", "ok", "network adapters on"),
    ],
)
def test_a_missing_setting_of_nvidias_readme_is_a_warning_with_its_remedy(lines: str, status: str, words: str) -> None:
    check = checks({"enroot": Answer(0, f"3.5.0\n{lines}\n")})["enroot-settings"]
    assert (check.status, words in check.found, status == "ok" or "on all nodes" in check.fix) == (status, True, True)


def test_no_adapter_hook_is_needed_if_the_profile_names_adapters_or_for_one_node() -> None:
    without = {"enroot": Answer(0, "3.5.0\nhook\nENROOT_REMAP_ROOT yes\nENROOT_ROOTFS_WRITABLE yes\n")}
    profile = replace(PROFILE, env=(("NCCL_IB_HCA", "mlx5"),))
    assert checks(without, profile=profile)["enroot-settings"].status == "ok"
    check = checks(without, replace(DIRECT, plan=replace(PLAN, nodes=1)))["enroot-settings"]
    assert (check.status, "adapters" in check.needed) == ("ok", False)


def test_a_module_without_a_patch_level_counts_as_new_enough() -> None:
    only_a_module = {"python": Answer(0, ""), "modules": Answer(0, "Python/3.10\n")}
    assert checks(only_a_module, PUBLISHED)["python"].status == "ok"
    assert checks(only_a_module, replace(PUBLISHED, python="3.12"))["python"].status == "failed"


@pytest.mark.parametrize(
    ("version", "status"), [("3.12.0", "ok"), ("3.12.11", "ok"), ("3.13.1", "failed"), ("3.11.9", "failed")]
)
def test_a_newer_python_does_not_replace_the_only_supported_version(version: str, status: str) -> None:
    needs = replace(PUBLISHED, python="3.12", python_only=True)
    check = checks({"python": Answer(0, f"python python3 {version}\n"), "modules": Answer(1, "")}, needs)["python"]
    assert (check.status, check.needed) == (status, "3.12, for the environment")


def test_the_direct_procedure_needs_no_python() -> None:
    assert checks({"python": Answer(0, ""), "modules": Answer(1, "")})["python"].status == "ok"


def test_an_image_that_is_there_needs_no_enroot_no_space_and_no_registry() -> None:
    there = {"image": Answer(0, ""), "enroot": Answer(127, ""), **free(2)}
    by_id = checks(there)
    assert {check.status for check in by_id.values()} == {"ok"}
    assert by_id["disk"].needed == "1 GB for runs"
    silent = {"image": Answer(0, ""), "probe": Answer(0, "registry curl: (7) refused\n")}
    assert {check.status for check in reach(silent).values()} == {"ok"}


def test_an_image_is_imported_in_the_cpu_partition() -> None:
    by_id = checks({"enroot": Answer(127, "")}, profile=replace(PROFILE, cpu_partition="cpu"))
    assert "in partition cpu" in by_id["enroot"].fix


@pytest.mark.parametrize("group", [login_node_group, network_group])
def test_the_deadline_of_the_checks_exceeds_the_limits_of_their_commands(
    group: Callable[[Needs], CommandChecks],
) -> None:
    """Each command is slow, and all of them answer in time."""
    checks = group(PUBLISHED)
    longest = [max(map(int, re.findall(r"limited (\d+)", snippet)), default=0) for snippet in checks.commands.values()]
    assert checks.deadline_s > sum(longest)


def test_an_install_directory_that_is_to_be_made() -> None:
    check = checks({"install": Answer(0, "/lustre\nwritable\n")})["install-dir"]
    assert (check.status, check.found) == ("ok", "will be created in /lustre")


@pytest.mark.parametrize(
    "quota",
    [
        "",
        "Disk quotas for user me (uid 1000): none\n",
        QUOTA.format(used=5, files=7).replace("lustre", "other"),
        QUOTA.format(used=5, files=7).replace("100000000", "0").replace("200000", "0"),
        "/lustre: quota hung up",
    ],
)
def test_without_a_quota_there_is_no_quota_check(quota: str) -> None:
    assert "quota" not in checks({"quota": Answer(0, quota)})


def test_files_that_a_file_system_does_not_count_are_no_trouble() -> None:
    assert "inodes" not in checks({"inodes": Answer(0, INODES.format(0).replace("16777216", "0"))}, PUBLISHED)
    macos = "Filesystem 512-blocks Used Available Capacity iused ifree %iused Mounted on\n/d 9 9 9 9% 5 5 9% /a\n"
    assert "inodes" not in checks({"inodes": Answer(0, macos)}, PUBLISHED)


REFUSED = "curl: (7) Failed to connect to nvcr.io port 443 after 2 ms: Couldn't connect to server HTTP 000"


@pytest.mark.parametrize(
    ("line", "needs", "check", "status", "words"),
    [
        (f"registry {REFUSED}", DIRECT, "registry", "failed", "https_proxy"),
        ("registry HTTP 503", DIRECT, "registry", "failed", "copy the container image"),
        ("git fatal: could not read Username: terminal prompts disabled", PUBLISHED, "git", "failed", "git config"),
        ("git no git", PUBLISHED, "git", "failed", "The install needs git"),
        (
            "git fatal: unable to access 'x': Received HTTP code 407 from proxy",
            PUBLISHED,
            "git",
            "failed",
            "does not work",
        ),
        ("git HTTP 200", PUBLISHED, "git", "failed", "yourself"),
        ("registry HTTP 407", DIRECT, "registry", "failed", "The site's proxy does not work"),
        ("registry curl: (5) Could not resolve proxy: p HTTP 000", DIRECT, "registry", "failed", "proxy does not work"),
        (f"registry {REFUSED}", Needs(PROFILE), "registry", "warning", "yourself"),
        (f"git {REFUSED}", PUBLISHED, "git", "failed", "the recipe's repository"),
        (f"hub {REFUSED}", PUBLISHED, "hub", "failed", "the tokenizer"),
        ("", DIRECT, "registry", "failed", "yourself"),
    ],
)
def test_an_unreachable_server_fails_only_the_checks_that_need_it(
    line: str, needs: Needs, check: str, status: str, words: str
) -> None:
    found = reach({"probe": Answer(0, line + "\n")}, needs)[check]
    assert (found.status, words in found.fix) == (status, True), found
    assert "HTTP 000" not in found.found


IMAGE, NEMO, WHEELS = (f"/lustre/llmb/offline/{name}" for name in ("x.sqsh", "NeMo.bundle", "wheels"))


@pytest.mark.parametrize(
    ("there", "status", "bring"),
    [
        ([], ["failed", "failed"], (IMAGE, NEMO, WHEELS)),
        ([IMAGE], ["ok", "failed"], (NEMO, WHEELS)),
        ([IMAGE, WHEELS], ["ok", "failed"], (NEMO,)),
        ([IMAGE, NEMO], ["ok", "ok"], ()),  # a package index may be reachable although the git host is not
    ],
)
def test_without_internet_the_files_to_copy_are_listed(
    there: list[str], status: list[str], bring: tuple[str, ...]
) -> None:
    needs = replace(DIRECT, repository=RECIPES, brought_image=IMAGE, brought_sources=(NEMO,), brought_packages=WHEELS)
    out = {"probe": Answer(0, f"registry {REFUSED}\ngit {REFUSED}\n"), "brought": Answer(0, "\n".join(there))}
    by_id = reach(out, needs)
    report = Preflight((by_id["registry"], by_id["git"]))
    assert ([check.status for check in report.checks], report.bring) == (status, bring)
    ending = summary(report).rpartition(": ")[2]
    assert ending == (", ".join(bring) or "ready")
    assert all(path in " ".join(check.fix for check in report.failed) for path in bring)
    preflight = Preflight((*report.checks, reach({"probe": Answer(0, f"hub {REFUSED}\n")}, PUBLISHED)["hub"]))
    assert (preflight.bring, summary(preflight).rpartition(": ")[2]) == ((), "not ready")


def test_a_server_that_nothing_is_fetched_from_may_be_out_of_reach() -> None:
    by_id = reach({"probe": Answer(0, f"registry HTTP 401\ngit {REFUSED}\nhub {REFUSED}\n")})
    assert [check.status for check in by_id.values()] == ["ok", "ok", "ok"]
    assert by_id["hub"].found.startswith("not needed, and not reached: Failed to connect")


@pytest.mark.parametrize(("each_run", "hub"), [(False, "ok"), (True, "failed")])
def test_after_the_install_only_downloads_of_every_run_block(each_run: bool, hub: str) -> None:
    out = {"probe": Answer(0, f"registry HTTP 401\ngit {REFUSED}\nhub {REFUSED}\n")}
    needs = replace(PUBLISHED, set_up="/lustre/llmb/set-up", hub_each_run=each_run)
    before, after = reach(out, needs), reach({**out, "set_up": Answer(0, "")}, needs)
    assert [before[name].status for name in ("git", "hub")] == ["failed", "failed"]
    assert [after[name].status for name in ("git", "hub")] == ["ok", hub]
    assert after["git"].needed == f"nothing from {RECIPES}: the recipe's repository exists"


def test_an_enroot_that_does_not_start_is_quoted() -> None:
    found = checks({"enroot": Answer(1, "first\nmkdir: cannot create directory '/opt/dlami': Permission denied\n")})
    assert "does not start on the login node: mkdir: cannot create directory '/opt/dlami'" in found["enroot"].found
    assert not {"enroot-settings", "enroot-space"} & set(found)


def test_a_private_group_of_the_user_shares_nothing() -> None:
    mine = {"install": Answer(0, "/lustre/llmb\nwritable\nme 7\nis 7 775 me . me\nis 7 775 me images me\n")}
    assert checks(mine)["install-dir"].status == "ok"


def test_the_proxy_that_only_enroot_uses_is_named() -> None:
    through = "registry_proxy http://proxy:3128\nregistry {}\n"
    reached = reach({"probe": Answer(0, through.format("HTTP 401"))})["registry"]
    assert (reached.status, reached.found) == ("ok", "reached (HTTP 401) through Enroot's proxy http://proxy:3128")
    refused = reach({"probe": Answer(0, through.format(REFUSED))})["registry"]
    assert (refused.status, "names the proxy http://proxy:3128" in refused.fix) == ("failed", True)


@pytest.mark.parametrize("cpu_partition", [None, "cpu"])
@pytest.mark.parametrize(("enroot", "status"), [(Answer(1, ""), "warning"), (Answer(0, "/usr/bin/enroot\n"), "failed")])
def test_an_unreachable_registry_blocks_if_the_login_node_imports_the_image(
    enroot: Answer, status: str, cpu_partition: str | None
) -> None:
    refused = {"enroot": enroot, "probe": Answer(0, f"registry {REFUSED}\n")}
    assert reach(refused, profile=replace(PROFILE, cpu_partition=cpu_partition))["registry"].status == status


@pytest.mark.parametrize(
    ("changes", "needs", "servers"),
    [
        ({}, DIRECT, {"registry"}),
        ({}, PUBLISHED, {"registry", "git", "hub"}),
        ({"image": Answer(0, "")}, DIRECT, set()),
        ({}, Needs(PROFILE), set()),
        ({"probe": Answer(0, "hub HTTP 200\n")}, PUBLISHED, {"hub"}),
    ],
)
def test_access_is_checked_only_on_servers_that_are_needed_and_reachable(
    changes: dict[str, Answer], needs: Needs, servers: set[str]
) -> None:
    assert servers_in_use(Preflight(tuple(reach(changes, needs).values()))) == servers


def test_the_servers_are_data() -> None:
    sources = Sources("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3")
    probe = network_group(replace(DIRECT, sources=sources)).commands["probe"]
    for address in ("http://127.0.0.1:1/v2/", "http://127.0.0.1:2 &", "http://127.0.0.1:3/"):
        assert address in probe
    assert "nvcr.io" not in probe


answers = st.builds(
    Answer, st.integers(-1, 200), st.text() | st.text("|=:, python3.12\n/\x1b[31m0123456789*HTPfre", max_size=90)
)
NEEDS = st.sampled_from([DIRECT, PUBLISHED, Needs(PROFILE)])


@given(st.fixed_dictionaries(dict.fromkeys([*LOGIN_NODE, *NETWORK], answers)), NEEDS)
def test_the_report_is_clean_text_for_any_answer_of_a_login_node(facts: Answers, needs: Needs) -> None:
    for check in map(clean_check, [*login_node_checks(facts, needs), *network_checks(facts, needs)]):
        for text in (check.found, check.needed, check.fix):
            assert text == clean_line(text)
        assert check.found
        assert check.needed
        assert (check.fix == "") == (check.status == "ok")
