"""The wizard without a screen: every step, gate and flow back; what is asked of a cluster, and what it says."""

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
    AskForKeys,
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
    Failed,
    FailureRead,
    InputIdle,
    LaunchSaid,
    OwnResultsRead,
    Prepared,
    ProfileSaved,
    RunAgain,
    RunsRead,
    ScreenActive,
    StepsChanged,
    StepTaken,
    SubmitAgreed,
    Submitted,
    TaskEnded,
    TaskEvent,
)
from llmb_tui.wizard.gates import command_line, mark, refused
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
    def test_the_first_state_is_planned_and_looks_soon(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, Answers())
        assert wizard.step() is StepId.WORKLOAD
        assert wizard.state.proposal.plan is not None
        assert wizard.effects == (FocusFirst(), StartIdleTimer(), ReadOwnResults("eos"))

    def test_on_from_step_to_step_answers_what_each_showed(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, Answers(), cluster=None)
        for step in (StepId.HARDWARE, StepId.SCALE, StepId.CLUSTER):
            assert FocusFirst() in wizard.tell(ENTER)
            assert wizard.step() is step
        answers, full = wizard.state.answers, wizard.state.proposal.full
        assert replace(answers, cluster=None) == replace(full, cluster=None)

    def test_back_is_never_blocked_and_keeps_every_answer(self, wizard: Wizard) -> None:
        wizard.tell(StepTaken(StepId.SCALE), Answered("scale", "96"))
        before = wizard.state.answers
        wizard.tell(NEXT)
        assert wizard.step() is StepId.SCALE, "an error at this step blocks going on"
        for step in (StepId.HARDWARE, StepId.WORKLOAD, StepId.WORKLOAD):
            wizard.tell(BACK)
            assert wizard.step() is step
        assert wizard.state.answers == before
        wizard.tell(StepTaken(StepId.RUN))
        for step in reversed(StepId):
            assert wizard.step() is step
            wizard.tell(BACK)

    def test_what_blocks_going_on_is_said(self, wizard: Wizard) -> None:
        wizard.tell(StepTaken(StepId.SCALE), Answered("scale", "96"))
        (told,) = wizard.tell(NEXT)
        assert isinstance(told, Notify)
        assert "96" in told.words

    def test_an_error_of_another_step_does_not_block_this_one(self, wizard: Wizard) -> None:
        wizard.tell(Answered("scale", "96"), NEXT)
        assert wizard.step() is StepId.HARDWARE

    def test_a_later_step_can_be_left_whatever_stands_against_it(self, wizard: Wizard) -> None:
        wizard.tell(StepTaken(StepId.CLUSTER), NEXT)
        assert wizard.step() is StepId.INSTALL
        wizard.tell(NEXT)
        assert wizard.step() is StepId.REVIEW

    def test_straight_forward_answers_the_step_that_is_left_and_straight_back_does_not(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, Answers(), cluster=None)
        wizard.tell(StepTaken(StepId.HARDWARE))
        assert wizard.state.answers.size is not None
        wizard.tell(StepTaken(StepId.WORKLOAD))
        assert wizard.state.answers.gpu is None

    def test_what_is_ready_is_passed_by(self, wizard: Wizard) -> None:
        wizard.installed().tell(StepTaken(StepId.SCALE), NEXT)
        assert wizard.step() is StepId.REVIEW

    def test_the_same_answer_again_changes_nothing(self, wizard: Wizard) -> None:
        assert update(wizard.state, Answered("scale", "16")) == (wizard.state, ())
        assert update(wizard.state, Answered("cluster", "eos")) == (wizard.state, ())

    def test_what_is_no_selection_has_no_plan_and_keeps_the_answers(self, wizard: Wizard) -> None:
        wizard.tell(Answered("time_limit", "1"))
        assert (wizard.state.proposal.plan, wizard.state.proposal.request) == (None, None)
        assert mark(wizard.state, StepId.SCALE) == "flagged"
        wizard.tell(Answered("time_limit", "00:10:00"))
        assert wizard.plan.time_limit == "00:10:00"

    def test_the_choice_is_copied_as_a_command_line(self, wizard: Wizard) -> None:
        words = "llmb-tui submit -w nemotron4@25.04 -s 15b --gpu h100 -d bf16 --scale 16 --cluster eos"
        assert command_line(wizard.state) == words
        wizard.tell(Answered("cluster", "gone"))
        assert command_line(wizard.state) == words.replace("submit", "plan").removesuffix(" --cluster eos")
        wizard.tell(Answered("cluster", "eos"))
        wizard.tell(Answered("time_limit", "1"))
        assert command_line(wizard.state) == ""


class TestLooks:
    def test_a_saved_cluster_is_looked_at_once_by_itself(self, wizard: Wizard) -> None:
        (probe,) = wizard.tell(InputIdle())
        assert probe == Probe(wizard.request, attended=False, early=True)
        assert wizard.state.cluster.link == "connecting"
        wizard.tell(ConnectionChanged(wizard.request, "unknown"), TaskEnded(wizard.request, "probe"))
        assert wizard.tell(InputIdle()) == ()
        assert wizard.state.cluster.error is None

    @pytest.mark.parametrize("is_late", [False, True])
    def test_one_that_answered_is_looked_at_again_when_it_is_chosen_again(self, wizard: Wizard, is_late: bool) -> None:
        said, away = ConnectionChanged(wizard.request, "connected"), Answered("cluster", "selene")
        wizard.tell(InputIdle(), *((away, said) if is_late else (said, away)), Answered("cluster", "eos"))
        assert wizard.tell(InputIdle()) == (Probe(wizard.request, attended=False, early=True),)
        wizard.tell(ConnectionChanged(wizard.request, "unknown"), TaskEnded(wizard.request, "probe"))
        assert wizard.tell(InputIdle()) == (), "it does not answer any more"

    def test_nothing_is_looked_at_while_something_goes_on_there(self, wizard: Wizard) -> None:
        wizard.tell(InputIdle())
        assert wizard.tell(InputIdle()) == ()

    def test_no_cluster_and_no_selection_are_not_looked_at(self, catalog: Catalog) -> None:
        assert Wizard(catalog, cluster=None).tell(InputIdle()) == ()
        wizard = Wizard(catalog, replace(NEMOTRON, time_limit="1"))
        (said,) = wizard.tell(InputIdle(), ActionRequested("check"))
        assert said == Notify("This is not a time limit. Type HH:MM:SS, such as 00:30:00, or D-HH:MM:SS.")
        wizard.tell(Answered("time_limit", ""))
        assert of_kind(wizard.tell(InputIdle()), Probe), "it was not tried yet"

    def test_a_connected_cluster_is_looked_at_again_for_other_answers(self, wizard: Wizard) -> None:
        wizard.installed()
        assert of_kind(wizard.tell(Answered("scale", "32")), StartIdleTimer)
        cluster = wizard.state.cluster
        assert (cluster.link, cluster.preflight, cluster.steps) == ("connected", None, ())
        assert of_kind(wizard.tell(InputIdle()), Probe) == (Probe(wizard.request, attended=False, early=True),)

    def test_one_that_was_asked_for_replaces_what_was_known(self, wizard: Wizard) -> None:
        wizard.installed()
        (probe,) = wizard.tell(ActionRequested("check"))
        assert probe == Probe(wizard.request, attended=True, early=True)
        cluster = wizard.state.cluster
        assert (cluster.link, cluster.preflight, cluster.steps) == ("connecting", None, ())

    @pytest.mark.parametrize("action", ["install", "submit"])
    def test_none_disturbs_an_install_or_a_submission(self, wizard: Wizard, action: str) -> None:
        if action == "install":
            wizard.connected().tell(ActionRequested("install"))
        else:
            wizard.at_review().tell(SubmitAgreed(draft_of(wizard.request), 0.0))
        assert wizard.tell(ActionRequested("check")) == (
            Notify("The cluster is at work for you: check it when that is done."),
        )
        assert wizard.state.cluster.link == "connected"

    def test_without_a_cluster_one_is_entered(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, cluster=None)
        assert wizard.tell(ActionRequested("check")) == (EditCluster(None),)
        wizard.tell(StepTaken(StepId.CLUSTER))
        assert wizard.tell(ENTER) == (EditCluster(None),)

    def test_a_failed_one_is_told_until_it_is_tried_again(self, wizard: Wizard) -> None:
        wizard.tell(
            ActionRequested("check"), ConnectionChanged(wizard.request, "failed"), Failed(wizard.request, "probe", LOST)
        )
        wizard.tell(TaskEnded(wizard.request, "probe"))
        assert wizard.state.cluster.error_with_remedy("probe") is LOST
        assert mark(wizard.state, StepId.CLUSTER) == "flagged"
        wizard.tell(ActionRequested("check"))
        assert wizard.state.cluster.error is None
        assert mark(wizard.state, StepId.CLUSTER) == "open"
        assert wizard.state.cluster.unreachable is None

    @pytest.mark.parametrize("deed", [StepTaken(StepId.REVIEW), Answered("scale", "32")])
    @pytest.mark.parametrize("is_late", [False, True])
    def test_why_there_is_no_connection_stays_told_whatever_is_done_else(
        self, wizard: Wizard, deed: Event, is_late: bool
    ) -> None:
        request = wizard.request
        said = (ConnectionChanged(request, "failed"), Failed(request, "probe", LOST), TaskEnded(request, "probe"))
        wizard.tell(ActionRequested("check"), *((deed, *said) if is_late else (*said, deed)))
        assert wizard.state.cluster.unreachable is LOST
        assert mark(wizard.state, StepId.CLUSTER) == "flagged"
        wizard.tell(ConnectionChanged(wizard.request, "connected"))
        assert wizard.state.cluster.unreachable is None

    def test_another_clusters_missing_connection_is_not_this_ones(self, wizard: Wizard) -> None:
        earlier = wizard.request
        wizard.tell(ActionRequested("check"), Answered("cluster", "selene"), ActionRequested("check"))
        wizard.tell(ConnectionChanged(wizard.request, "failed"), Failed(earlier, "probe", LOST))
        assert wizard.state.cluster.unreachable is None

    def test_the_banner_stays_until_another_is_read(self, wizard: Wizard) -> None:
        wizard.tell(
            ConnectionChanged(wizard.request, "connected", "Welcome."), ConnectionChanged(wizard.request, "failed")
        )
        assert wizard.state.cluster.banner == "Welcome."

    def test_an_install_that_was_not_looked_at_is_on_arrival(self, wizard: Wizard) -> None:
        wizard.tell(ConnectionChanged(wizard.request, "connected"))
        assert of_kind(wizard.tell(StepTaken(StepId.INSTALL)), Probe)
        assert not of_kind(wizard.tell(StepTaken(StepId.INSTALL)), Probe), "one goes on"

    def test_a_saved_profile_is_chosen_and_looked_at(self, wizard: Wizard) -> None:
        other = replace(SELENE, name="new")
        effects = wizard.tell(ProfileSaved(other))
        assert wizard.request.profile == other
        assert [one.name for one in wizard.state.profiles] == ["eos", "new", "selene"]
        assert of_kind(effects, Probe, ReadOwnResults) == (
            ReadOwnResults("new"),
            Probe(wizard.request, attended=True, early=True),
        )

    def test_what_the_other_procedures_want_to_know_is_looked_for_once(self, wizard: Wizard) -> None:
        wizard.tell(InputIdle(), EarlyChecked(wizard.request, ()))
        assert wizard.tell(ActionRequested("check")) == (Probe(wizard.request, attended=True, early=False),)
        wizard.tell(Answered("scale", "32"))
        assert wizard.tell(ActionRequested("check")) == (Probe(wizard.request, attended=True, early=False),)
        wizard.tell(Answered("procedure", "upstream"))
        assert wizard.tell(ActionRequested("check")) == (Probe(wizard.request, attended=True, early=True),)


class TestOtherRequests:
    """What is said for a request that is not the present one any more."""

    @pytest.mark.parametrize("change", [Answered("scale", "32"), Answered("procedure", "upstream")])
    def test_another_selection_or_procedure_keeps_the_connection_and_forgets_the_rest(
        self, wizard: Wizard, change: Answered
    ) -> None:
        wizard.at_review().tell(change)
        assert wizard.state.cluster == wizard.state.cluster.of_connection()
        assert wizard.state.cluster.link == "connected"

    def test_another_cluster_forgets_the_connection_too(self, wizard: Wizard) -> None:
        effects = wizard.installed().tell(Answered("cluster", "selene"))
        assert wizard.state.cluster.link == "unknown"
        assert ReadOwnResults("selene") in effects
        assert of_kind(wizard.tell(InputIdle()), Probe)
        wizard.tell(Answered("cluster", "gone"))
        assert (wizard.state.cluster.link, wizard.state.proposal.profile) == ("none", None)

    def test_what_does_not_hold_is_not_taken(self, wizard: Wizard) -> None:
        earlier = wizard.installed().request
        draft = draft_of(earlier)
        wizard.tell(Answered("scale", "32"))
        state = wizard.state
        reports: tuple[TaskEvent, ...] = (
            CheckDone(earlier, PASSED, whole=True),
            CheckDone(earlier, PASSED, whole=False),
            StepsChanged(earlier, INSTALLED),
            Prepared(earlier, draft),
            Failed(earlier, "install", LOST),
            TaskEnded(earlier, "install"),
        )
        assert wizard.tell(*reports) == ()
        assert wizard.state is state

    def test_the_connection_holds_and_leads_to_another_look(self, wizard: Wizard) -> None:
        wizard.tell(InputIdle())
        earlier = wizard.request
        wizard.tell(Answered("scale", "32"))
        assert wizard.tell(ConnectionChanged(earlier, "connected", "Welcome.")) == (StartIdleTimer(),)
        assert (wizard.state.cluster.link, wizard.state.cluster.banner) == ("connected", "Welcome.")
        assert of_kind(wizard.tell(InputIdle()), Probe) == (Probe(wizard.request, attended=False, early=True),)

    def test_the_connection_of_another_cluster_does_not(self, wizard: Wizard) -> None:
        earlier = wizard.request
        wizard.tell(Answered("cluster", "selene"))
        assert wizard.tell(ConnectionChanged(earlier, "connected")) == ()
        assert wizard.state.cluster.link == "unknown"

    def test_problems_that_were_learned_do_not_make_it_another_request(self, wizard: Wizard) -> None:
        wizard.tell(Answered("procedure", "upstream"), ActionRequested("check"))
        earlier = wizard.request
        refused = replace(COMMITS, status="failed")
        wizard.tell(EarlyChecked(earlier, (refused,)), CheckDone(earlier, PASSED, whole=True))
        assert not wizard.plan.launchable
        assert wizard.state.cluster.preflight is PASSED

    def test_answers_that_come_back_find_the_cluster_connected_and_nothing_else(self, wizard: Wizard) -> None:
        wizard.installed().tell(Answered("scale", "32"), Answered("scale", "16"))
        assert wizard.state.cluster == wizard.state.cluster.of_connection()


class TestInstall:
    def test_it_runs_what_is_missing_and_goes_on_once_it_is_whole(self, wizard: Wizard) -> None:
        wizard.connected().tell(StepTaken(StepId.INSTALL))
        assert wizard.tell(ENTER) == (Install(wizard.request),)
        assert wizard.tell(ENTER, ActionRequested("install")) == (), "it runs already"
        wizard.tell(StepsChanged(wizard.request, INSTALLED), TaskEnded(wizard.request, "install"))
        wizard.tell(ENTER)
        assert wizard.step() is StepId.REVIEW

    @pytest.mark.parametrize(("field", "other"), [("scale", "32"), ("cluster", "selene")])
    def test_one_that_goes_on_is_known_to_whoever_comes_back(self, wizard: Wizard, field: str, other: str) -> None:
        wizard.connected().tell(ActionRequested("install"))
        mine, before = wizard.request, getattr(wizard.state.answers, field)
        wizard.tell(Answered(field, other))
        assert "install" not in wizard.state.cluster.tasks, "it is another request's"
        wizard.tell(Answered(field, str(before)))
        assert of_kind(wizard.tell(ActionRequested("install")), Install) == ()
        if field == "scale":
            assert wizard.state.cluster.installing
        wizard.tell(TaskEnded(mine, "install"))
        assert not wizard.state.cluster.installing
        assert of_kind(wizard.connected().tell(ActionRequested("install")), Install) == (Install(mine),)

    def test_it_needs_a_cluster_and_a_launchable_selection(self, catalog: Catalog) -> None:
        for wizard, why in (
            (Wizard(catalog, cluster=None), "Choose a cluster first: step 4."),
            (Wizard(catalog, replace(NEMOTRON, scale=96)), "Choose a listed scale: 64 or 128 GPUs."),
        ):
            (told,) = of_kind(wizard.tell(ActionRequested("install")), Notify, Install)
            assert isinstance(told, Notify)
            assert why in told.words

    def test_a_step_that_lacks_a_key_asks_for_it(self, wizard: Wizard) -> None:
        wizard.connected().tell(ActionRequested("install"), StepsChanged(wizard.request, LACKING))
        first, *_ = wizard.tell(TaskEnded(wizard.request, "install"))
        assert first == AskForKeys(wizard.request, "hugging-face")
        assert wizard.tell(ActionRequested("keys")) == (AskForKeys(wizard.request, "hugging-face"),)

    def test_who_is_elsewhere_is_asked_for_no_key(self, wizard: Wizard) -> None:
        wizard.connected().tell(ActionRequested("install"), StepsChanged(wizard.request, LACKING), ScreenActive(False))
        assert of_kind(wizard.tell(TaskEnded(wizard.request, "install")), AskForKeys) == ()

    def test_a_cluster_that_was_at_work_when_it_was_to_be_looked_at_is_looked_at_then(self, wizard: Wizard) -> None:
        wizard.connected().tell(Answered("scale", "32"), StepTaken(StepId.REVIEW))
        assert "prepare" in wizard.state.cluster.tasks
        assert wizard.tell(InputIdle()) == ()
        assert StartIdleTimer() in wizard.tell(TaskEnded(wizard.request, "prepare"))
        assert of_kind(wizard.tell(InputIdle()), Probe)

    def test_keys_need_a_request(self, wizard: Wizard, catalog: Catalog) -> None:
        assert wizard.tell(ActionRequested("keys")) == (AskForKeys(wizard.request, None),)
        assert Wizard(catalog, cluster=None).tell(ActionRequested("keys")) == ()

    def test_what_a_login_shell_sets_is_asked_for_once_it_is_known(self, wizard: Wizard) -> None:
        assert site_variables(wizard.state) == Notify("The cluster was not checked yet: c connects and checks.")
        wizard.connected()
        assert site_variables(wizard.state) == Notify(
            "A login shell there sets nothing that a job would lack.", "information"
        )
        network, paths = (("NCCL_IB_HCA", "mlx5_0"),), (("LD_LIBRARY_PATH", "/opt/lib"),)
        checks = (
            Check(NETWORK_VARIABLES, "Site's variables", "warning", "", "", "", variables=network),
            Check(PATH_VARIABLES, "Site's paths", "ok", "", "", "", variables=paths),
        )
        wizard.tell(CheckDone(wizard.request, Preflight(checks), whole=True))
        assert site_variables(wizard.state) == SiteVariables(wizard.request.profile, network, paths)

    def test_what_went_wrong_is_told_until_it_is_tried_again(self, wizard: Wizard) -> None:
        wizard.connected().tell(ActionRequested("install"), Failed(wizard.request, "install", LOST))
        wizard.tell(TaskEnded(wizard.request, "install"))
        assert wizard.state.cluster.error_with_remedy("install") is LOST
        wizard.tell(ActionRequested("install"))
        assert wizard.state.cluster.error is None


class TestObserverMode:
    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        return Wizard(catalog, profiles=(replace(EOS, read_only=True),))

    def test_the_cluster_is_looked_at_and_nothing_is_changed_there(self, wizard: Wizard) -> None:
        assert of_kind(wizard.tell(InputIdle()), Probe)
        wizard.connected().tell(StepTaken(StepId.INSTALL))
        assert refused(wizard.state) == {"install", "keys"}
        for action in (ENTER, ActionRequested("install"), ActionRequested("keys")):
            assert wizard.tell(action) == (Notify("It is only looked at. Change the profile."),)

    def test_a_run_is_shown_and_not_submitted(self, wizard: Wizard) -> None:
        wizard.at_review()
        assert refused(wizard.state) == {"submit"}
        told = (Notify("It is only looked at. Change the profile."),)
        assert wizard.tell(ENTER) == wizard.tell(ActionRequested("submit")) == told


class TestReview:
    def test_the_script_is_made_once(self, wizard: Wizard) -> None:
        wizard.installed()
        assert wizard.tell(StepTaken(StepId.REVIEW)) == (FocusFirst(), Prepare(wizard.request))
        assert wizard.tell(StepTaken(StepId.REVIEW)) == (FocusFirst(),), "it is being made"
        wizard.tell(Prepared(wizard.request, draft_of(wizard.request)), TaskEnded(wizard.request, "prepare"))
        assert wizard.tell(StepTaken(StepId.REVIEW)) == (FocusFirst(),), "it is there"

    def test_nothing_is_made_of_what_cannot_be_launched(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, replace(NEMOTRON, scale=96))
        assert wizard.tell(StepTaken(StepId.REVIEW)) == (FocusFirst(),)
        (told,) = wizard.tell(ENTER)
        assert isinstance(told, Notify)
        assert wizard.tell(ActionRequested("submit")) == (told,)

    def test_what_comes_first_is_said(self, wizard: Wizard) -> None:
        wizard.at_review().tell(StepsChanged(wizard.request, MISSING))
        assert wizard.tell(ENTER) == (Notify("The install is not whole: step 5 comes first."),)

    def test_it_asks_before_it_submits(self, wizard: Wizard) -> None:
        wizard.at_review()
        draft = wizard.state.cluster.prepared
        assert draft is not None
        assert wizard.tell(ENTER) == wizard.tell(ActionRequested("submit")) == (AskToSubmit(draft, ""),)
        assert wizard.tell(SubmitAgreed(draft, 7.0)) == (Submit(draft, PASSED, INSTALLED),)
        assert wizard.state.launch is not None
        assert (wizard.state.launch.run, wizard.state.launch.since) == (draft.run, 7.0)

    def test_one_submission_at_a_time(self, wizard: Wizard) -> None:
        wizard.at_review()
        agreed = SubmitAgreed(draft_of(wizard.request), 0.0)
        wizard.tell(agreed)
        (told,) = wizard.tell(agreed)
        assert isinstance(told, Notify)
        assert wizard.tell(ActionRequested("submit")) == (told,)
        wizard.tell(Answered("scale", "32"), StepTaken(StepId.REVIEW))
        (told,) = wizard.tell(ENTER)
        assert isinstance(told, Notify)
        assert "one at a time" in told.words


class TestScriptAhead:
    """The script is made before anybody looks at it, once the cluster answers for what is chosen."""

    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        wizard = Wizard(catalog)
        wizard.tell(InputIdle())
        return wizard

    def script(self, wizard: Wizard) -> None:
        wizard.tell(Prepared(wizard.request, draft_of(wizard.request)), TaskEnded(wizard.request, "prepare ahead"))

    def test_it_is_made_once_for_a_choice_however_often_review_is_entered(self, wizard: Wizard) -> None:
        connected = ConnectionChanged(wizard.request, "connected")
        assert of_kind(wizard.tell(connected, connected), PrepareAhead) == (PrepareAhead(wizard.request),)
        self.script(wizard)
        again = wizard.tell(
            StepTaken(StepId.REVIEW), BACK, StepTaken(StepId.REVIEW), ActionRequested("check"), connected
        )
        assert not of_kind(again, Prepare, PrepareAhead)
        assert wizard.state.cluster.prepared is not None

    def test_another_choice_drops_it_and_makes_another(self, wizard: Wizard) -> None:
        wizard.tell(ConnectionChanged(wizard.request, "connected"))
        earlier = wizard.request
        wizard.tell(Answered("scale", "32"), InputIdle(), Prepared(earlier, draft_of(earlier)))
        assert wizard.state.cluster.prepared is None
        told = wizard.tell(ConnectionChanged(wizard.request, "connected"))
        assert told == (PrepareAhead(wizard.request),) != (PrepareAhead(earlier),)

    def test_it_needs_a_connection_and_a_plan_that_can_be_launched(self, wizard: Wizard) -> None:
        assert wizard.tell(ConnectionChanged(wizard.request, "failed")) == ()
        wizard.tell(Answered("scale", "96"), InputIdle())
        assert wizard.tell(ConnectionChanged(wizard.request, "connected")) == ()

    def test_what_went_wrong_before_stays_told(self, wizard: Wizard) -> None:
        wizard.tell(Failed(wizard.request, "probe", LOST), ConnectionChanged(wizard.request, "connected"))
        assert wizard.state.cluster.error_with_remedy("probe") is LOST

    def test_who_enters_review_meanwhile_waits_for_it(self, wizard: Wizard) -> None:
        wizard.tell(ConnectionChanged(wizard.request, "connected"))
        assert not of_kind(wizard.tell(StepTaken(StepId.REVIEW)), Prepare)
        assert wizard.state.cluster.preparing
        self.script(wizard)
        assert not wizard.state.cluster.preparing

    def test_one_that_failed_is_made_for_who_waits_for_it_and_no_sooner(self, wizard: Wizard) -> None:
        ended = TaskEnded(wizard.request, "prepare ahead")
        assert wizard.tell(ConnectionChanged(wizard.request, "connected"), ended) == (PrepareAhead(wizard.request),)
        assert wizard.tell(StepTaken(StepId.REVIEW)) == (FocusFirst(), Prepare(wizard.request))

    def test_one_that_fails_while_somebody_waits_is_made_again(self, wizard: Wizard) -> None:
        wizard.tell(ConnectionChanged(wizard.request, "connected"), StepTaken(StepId.REVIEW))
        assert wizard.tell(TaskEnded(wizard.request, "prepare ahead")) == (Prepare(wizard.request),)
        assert wizard.tell(TaskEnded(wizard.request, "prepare")) == ()

    @pytest.mark.parametrize("action", ["enter", "submit"])
    def test_one_that_could_not_be_made_is_tried_again_at_review(self, wizard: Wizard, action: Action) -> None:
        wizard.installed().tell(StepTaken(StepId.REVIEW))
        assert wizard.tell(ActionRequested(action)) == (), "it is being made"
        wizard.tell(Failed(wizard.request, "prepare", LOST), TaskEnded(wizard.request, "prepare"))
        assert wizard.tell(ActionRequested(action)) == (Prepare(wizard.request),)
        assert wizard.state.cluster.error is None
        wizard.tell(Prepared(wizard.request, draft_of(wizard.request)), TaskEnded(wizard.request, "prepare"))
        assert of_kind(wizard.tell(ActionRequested(action)), AskToSubmit), "it is not submitted unasked"


class TestSubmission:
    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        """One on its way, seen from Review."""
        wizard = Wizard(catalog).at_review()
        wizard.tell(SubmitAgreed(draft_of(wizard.request), 0.0))
        return wizard

    def test_its_run_opens_for_who_waited(self, wizard: Wizard) -> None:
        run = replace(draft_of(wizard.request).run, submission="submitted")
        assert of_kind(wizard.tell(Submitted(wizard.request, run)), OpenRun) == (OpenRun(run.id),)
        wizard.tell(TaskEnded(wizard.request, "submit"))
        assert (wizard.state.step, wizard.state.launch) == (StepId.RUN, None)
        assert wizard.tell(ENTER) == (OpenRun(run.id),)
        wizard.tell(StepTaken(StepId.REVIEW), ENTER)
        assert wizard.step() is StepId.RUN, "what was submitted is not submitted again"
        assert of_kind(wizard.tell(ActionRequested("submit")), AskToSubmit, Submit, Prepare) == ()

    @pytest.mark.parametrize("gone", [StepTaken(StepId.SCALE), ScreenActive(False), Answered("scale", "32")])
    def test_who_has_gone_elsewhere_is_told(self, wizard: Wizard, gone: StepTaken | ScreenActive | Answered) -> None:
        request, run = wizard.request, replace(draft_of(wizard.request).run, submission="submitted", job_ids=("7",))
        wizard.tell(gone)
        step = wizard.step()
        told, read, *_ = wizard.tell(Submitted(request, run), TaskEnded(request, "submit"))
        words = f"Run {run.id} on eos, job 7: submitted. J lists it."
        assert told == Notify(words, "information")
        assert isinstance(read, ReadRuns)
        assert (wizard.state.step, wizard.state.launch) == (step, None)

    def test_one_that_is_not_known_to_be_submitted_is_told_so(self, wizard: Wizard) -> None:
        request, run = wizard.request, replace(draft_of(wizard.request).run, submission="unknown")
        (told, *_) = wizard.tell(ScreenActive(False), Submitted(request, run))[-3:]
        assert isinstance(told, Notify)
        assert "not known" in told.words

    def test_what_it_says_is_kept_whatever_is_looked_at(self, wizard: Wizard) -> None:
        request = wizard.request
        wizard.tell(Answered("scale", "32"), LaunchSaid(request, "Importing NeMo"))
        assert wizard.state.launch is not None
        assert wizard.state.launch.said == "Importing NeMo"

    @pytest.mark.parametrize("elsewhere", [False, True])
    def test_a_failure_is_shown_and_a_refused_run_is_made_anew(self, wizard: Wizard, elsewhere: bool) -> None:
        request = wizard.request
        if elsewhere:
            wizard.tell(Answered("scale", "32"))
        effects = wizard.tell(Failed(request, "submit", LOST, run_over=True), TaskEnded(request, "submit"))
        assert effects == (ShowFailure(LOST),)
        assert wizard.state.launch is None
        assert wizard.state.cluster.prepared is None
        assert wizard.tell(FailureRead()) == (Prepare(wizard.request),)

    def test_a_run_that_is_not_over_is_kept(self, wizard: Wizard) -> None:
        wizard.tell(Failed(wizard.request, "submit", LOST), TaskEnded(wizard.request, "submit"))
        assert wizard.state.cluster.prepared is not None
        assert wizard.tell(FailureRead()) == ()
        assert of_kind(wizard.tell(ENTER), AskToSubmit)

    def test_another_run_starts_over_with_the_same_answers(self, wizard: Wizard) -> None:
        run = replace(draft_of(wizard.request).run, submission="submitted")
        wizard.tell(Submitted(wizard.request, run), TaskEnded(wizard.request, "submit"))
        answers = wizard.state.answers
        assert wizard.tell(ActionRequested("again")) == (FocusFirst(), PrepareAhead(wizard.request)), (
            "with a script of its own"
        )
        assert (wizard.state.step, wizard.state.answers) == (StepId.WORKLOAD, answers)
        wizard.tell(TaskEnded(wizard.request, "prepare ahead"))
        assert of_kind(wizard.tell(StepTaken(StepId.REVIEW)), Prepare)


class TestReadings:
    def test_who_comes_back_reads_again(self, wizard: Wizard) -> None:
        assert wizard.tell(ScreenActive(False), ScreenActive(True)) == (ReadRuns(None), ReadOwnResults("eos"))

    def test_the_launched_run_is_taken_over_and_no_other(self, wizard: Wizard) -> None:
        run = draft_of(wizard.request).run
        wizard.tell(RunsRead((run,), run))
        assert (wizard.state.active_runs, wizard.state.cluster.launched) == ((run,), None)
        wizard.tell(Submitted(wizard.request, run))
        newer = replace(run, job_state="COMPLETED")
        wizard.tell(RunsRead((), newer))
        assert wizard.state.cluster.launched is newer
        wizard.tell(RunsRead((), replace(run, id="other")))
        assert wizard.state.cluster.launched is newer

    def test_results_of_the_chosen_cluster_are_measured_and_of_another_are_not(self, wizard: Wizard) -> None:
        result = ClusterResult("run-a", wizard.plan, 2.5, 0.0, "direct", "our script")
        seen = []
        for event in (
            OwnResultsRead("selene", (result,)),
            OwnResultsRead("eos", (result,)),
            Answered("cluster", "selene"),
        ):
            wizard.tell(event)
            seen.append(wizard.state.measured.step_time_s if wizard.state.measured else None)
        assert seen == [None, 2.5, None]
        assert wizard.state.results == ()

    def test_run_has_nothing_to_open_before_a_submission(self, wizard: Wizard) -> None:
        wizard.tell(StepTaken(StepId.RUN))
        assert wizard.tell(ENTER) == ()


class TestCommits:
    """Commits that are not public stand against NVIDIA's scripts there."""

    @pytest.fixture
    def wizard(self, catalog: Catalog) -> Wizard:
        wizard = Wizard(catalog)
        wizard.tell(StepTaken(StepId.SCALE), EarlyChecked(wizard.request, (replace(COMMITS, status="failed"),)))
        return wizard

    def test_they_are_known_before_anybody_chooses_it(self, wizard: Wizard) -> None:
        assert wizard.against() == (NOT_PUBLIC,)
        assert wizard.plan.launchable
        wizard.tell(Answered("procedure", "upstream"))
        assert NOT_PUBLIC in wizard.plan.problems
        assert mark(wizard.state, StepId.SCALE) == "flagged"

    def test_they_outlive_other_answers_of_the_same_recipe_and_cluster(self, wizard: Wizard) -> None:
        wizard.tell(Answered("scale", "32"))
        assert wizard.against() == (NOT_PUBLIC,)
        wizard.tell(Answered("workload", "grok1@25.02/314b"))
        assert wizard.against() == ()
        wizard.tell(Answered("workload", "nemotron4@25.04/15b"))
        assert wizard.against() == (NOT_PUBLIC,)
        wizard.tell(Answered("cluster", "selene"))
        assert wizard.against() == ()

    def test_a_later_look_that_finds_them_corrects_it_and_one_that_cannot_tell_does_not(self, wizard: Wizard) -> None:
        wizard.tell(EarlyChecked(wizard.request, (replace(COMMITS, status="warning"),)))
        assert wizard.against() == (NOT_PUBLIC,)
        wizard.tell(EarlyChecked(wizard.request, (COMMITS,)))
        assert wizard.against() == ()

    def test_an_install_that_does_not_find_one_says_so_too(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog, replace(NEMOTRON, procedure="upstream"))
        wizard.tell(StepsChanged(wizard.request, (StepState("commits", "Commits", "failed"),)))
        assert NOT_PUBLIC in wizard.plan.problems

    def test_what_is_found_for_an_earlier_request_is_known_as_well(self, catalog: Catalog) -> None:
        wizard = Wizard(catalog)
        earlier = wizard.request
        wizard.tell(StepTaken(StepId.SCALE), Answered("scale", "32"))
        wizard.tell(EarlyChecked(earlier, (replace(COMMITS, status="failed"),)))
        assert wizard.against() == (NOT_PUBLIC,)


class TestRunAgain:
    def run(self, **changes: Any) -> Run:
        return make_run("before", plan=replace(PLAN, selection=replace(NEMOTRON_64, **changes)))

    def test_what_a_run_was_is_the_answer_to_every_question(self, wizard: Wizard) -> None:
        chosen = replace(NEMOTRON_64, steps=60, overrides=Overrides(tp=4))
        effects = wizard.at_review().tell(RunAgain(make_run("before", plan=replace(PLAN, selection=chosen))))
        assert wizard.state.proposal.selection == chosen
        assert (wizard.step(), wizard.state.answers.cluster) == (StepId.SCALE, "eos")
        assert wizard.state.cluster.prepared is None
        assert [tell.words for tell in effects if isinstance(tell, Notify)] == [
            "As run before. Change what should be otherwise."
        ]
        wizard.tell(Answered("scale", "128"))
        assert wizard.plan.selection == replace(chosen, scale=128)

    def test_a_run_of_the_very_same_can_be_prepared_anew(self, wizard: Wizard) -> None:
        wizard.at_review()
        wizard.tell(RunAgain(make_run("before", plan=wizard.plan)))
        assert wizard.state.cluster.prepared is None
        assert wizard.busy("prepare ahead")

    @pytest.mark.parametrize("changes", [{"release": "1.0"}, {"workload": "gone"}, {"size": "1b"}, {"gpu": "h100x"}])
    def test_what_no_preset_has_any_more_changes_nothing(self, wizard: Wizard, changes: dict[str, str]) -> None:
        before = wizard.state
        (told,) = wizard.tell(RunAgain(self.run(**changes)))
        assert wizard.state is before
        assert isinstance(told, Notify)
        assert "cannot be made again: no preset has" in told.words

    @pytest.mark.parametrize(
        ("changes", "words"),
        [({"cluster": "gone"}, "cluster gone is not saved any more"), ({"procedure": "llmb"}, "started by llmb-run")],
    )
    def test_what_cannot_be_as_it_was_is_said(self, wizard: Wizard, changes: Any, words: str) -> None:
        effects = wizard.tell(RunAgain(replace(self.run(), **changes)))
        assert [words in tell.words for tell in effects if isinstance(tell, Notify)] == [True]
        assert wizard.plan.selection == NEMOTRON_64
