"""Checks of a Run:ai cluster: login, clock, project, quota, GPUs, volume claims, credentials, image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from llmb_tui.catalog.gpu_model import GpuModel, gpu_model
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.runai.cluster import RunaiCluster, runai_of
from llmb_tui.cluster.runai.failures import ApiError
from llmb_tui.cluster.runai.profile_check import split_claim
from llmb_tui.cluster.runai.values import HUB_KEYS, Node, Project
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.quantities import duration, plain_number
from llmb_tui.preflight.check_group import CheckGroup, card_warning, failed, ok, unserved, warning
from llmb_tui.preflight.needs import RunaiNeeds
from llmb_tui.preflight.report import Check, Preflight

_SKEW_S = 60.0
"""Largest difference of the clocks. It is the margin of tokens: with a larger one, logins fail."""
_NOT_ALLOWED = "the application has no permission to read it"
_ASK = "Ask Run:ai's administrators."


def runai_groups(needs: RunaiNeeds) -> tuple[CheckGroup, ...]:
    """Check groups in their order; without a plan only the checks of the cluster itself."""

    def cluster_group(cluster: Cluster, report: Preflight) -> Iterable[Check]:  # noqa: ARG001 - part of `CheckGroup`
        return _cluster_checks(runai_of(cluster), needs)

    def run_group(cluster: Cluster, report: Preflight) -> Iterable[Check]:
        return () if needs.plan is None or report.failed else _run_checks(runai_of(cluster), needs)

    return (cluster_group, run_group)


def _cluster_checks(cluster: RunaiCluster, needs: RunaiNeeds) -> Iterator[Check]:
    """Check the login, the clock, the project and the state of the cluster."""
    profile, api = needs.profile, cluster.api
    project = cluster.retry_after_disconnect(api.project)
    yield ok("login", "Login", f"{profile.app_id} at {profile.place}", "a trusted certificate, and a token")
    skew = api.skew_s or 0.0
    found, needed = (
        f"{duration(abs(skew))} {'behind' if skew > 0 else 'ahead of'} Run:ai",
        f"at most {duration(_SKEW_S)}",
    )
    if abs(skew) <= _SKEW_S:
        yield ok("clock", "Clock", found, needed)
    else:
        yield warning("clock", "Clock", found, needed, "Synchronise this computer's clock over the network (NTP).")
    if project is None:
        fix = "Set one of your projects in the profile, or ask for a role of the application in this project."
        yield failed("account", "Project", f"{profile.app_id} sees no such project", profile.project, fix)
        return
    if project.phase == "Ready":
        yield ok("account", "Project", f"{project.name}, {project.phase}", profile.project)
    else:
        found = f"{project.phase or 'not ready'} {project.message}".rstrip()
        yield unserved("account", "Project", found, "Ready", _ASK)
    try:
        facts = cluster.retry_after_disconnect(lambda: api.cluster(project.cluster_id))
    except ApiError as error:
        yield _unknown("cluster", "Cluster", "Connected", error)
    else:
        words = f"{facts.name}, {facts.state}"
        if facts.state == "Connected":
            yield ok("cluster", "Cluster", words, "Connected")
        else:
            yield failed("cluster", "Cluster", words, "Connected", f"The cluster's agents do not report. {_ASK}")


def _run_checks(cluster: RunaiCluster, needs: RunaiNeeds) -> Iterator[Check]:
    """Check that the project has the quota, nodes, claims and credentials of the plan."""
    project = cluster.retry_after_disconnect(cluster.project)
    yield _quota(needs, project)
    yield _hardware(cluster, needs, project)
    yield from _claims(cluster, needs, project)
    yield from _secrets(cluster, needs, project)
    yield ok("image", "Container image", "not checked: the nodes pull it when the workload starts", needs.image)


def _pools(needs: RunaiNeeds, project: Project) -> tuple[str, ...]:
    """Node pools of the workload."""
    return (needs.profile.node_pool,) if needs.profile.node_pool else project.default_node_pools or ("default",)


def _quota(needs: RunaiNeeds, project: Project) -> Check:
    assert needs.plan is not None  # noqa: S101 - see `runai_groups`
    wanted, pools = needs.plan.selection.scale, _pools(needs, project)
    quotas = [quota for quota in project.quotas if quota.node_pool in pools]
    needed = f"{wanted} GPUs in {' or '.join(pools)}"
    if not quotas:
        return failed(
            "gpus",
            "GPU quota",
            "no quota there",
            needed,
            "Choose another node pool, or ask Run:ai's administrators for a quota.",
        )
    best = max(quotas, key=lambda quota: float("inf") if quota.limit is None else quota.limit)
    limit = "no limit" if best.limit is None else f"at most {plain_number(best.limit)}"
    found = (
        f"{plain_number(best.deserved)} deserved, {limit}, {plain_number(best.allocated)} in use, in {best.node_pool}"
    )
    if best.limit is not None and wanted > best.limit:
        return failed("gpus", "GPU quota", found, needed, "Choose fewer GPUs, or ask for a larger quota.")
    if wanted > best.deserved:
        fix = "The run uses GPUs that others leave free, and may be preempted; a larger quota would prevent that."
        return warning("gpus", "GPU quota", found, needed, fix)
    return ok("gpus", "GPU quota", found, needed)


def _hardware(cluster: RunaiCluster, needs: RunaiNeeds, project: Project) -> Check:
    assert needs.plan is not None  # noqa: S101 - as above
    plan, pools = needs.plan, _pools(needs, project)
    gpu = plan.selection.gpu
    needed = f"{plan.nodes} nodes with {gpus_label(plan.gpus_per_node, gpu)}"
    try:
        nodes = cluster.retry_after_disconnect(lambda: cluster.api.nodes(project.cluster_id))
    except ApiError as error:
        return _unknown("gpu-type", "GPU type", needed, error)
    mine = [(node, gpu_model(node.gpu_type)) for node in nodes if node.node_pool in pools and node.gpus]
    fitting = [(node, model) for node, model in mine if model.is_type(gpu) and node.gpus >= plan.gpus_per_node]
    ready = sum(node.status == "Ready" for node, _ in fitting)
    kinds = ", ".join(sorted({_words(node, model) for node, model in mine})) or "no node with a GPU"
    found = f"{ready} ready of {len(fitting)} such nodes; in {' and '.join(pools)}: {kinds}"
    if len(fitting) < plan.nodes:
        slices = any(model.is_slice for _, model in mine)
        fix = f"A MIG slice is not a whole {gpu.upper()}. " if slices else ""
        fix += "Choose a node pool with these nodes, another GPU type, or fewer GPUs."
        return failed("gpu-type", "GPU type", found, needed, fix)
    if ready < plan.nodes:
        fix = "The workload will wait until enough other nodes are ready."
        return warning("gpu-type", "GPU type", found, needed, fix)
    if cards := sorted({node.gpu_type for node, model in fitting if model.is_card}):
        return warning("gpu-type", "GPU type", found, needed, card_warning(gpu, cards))
    return ok("gpu-type", "GPU type", found, needed)


def _words(node: Node, model: GpuModel) -> str:
    return f"{node.gpus} × {node.gpu_type or 'GPU of unknown type'}{' (MIG slices)' if model.is_slice else ''}"


def _claims(cluster: RunaiCluster, needs: RunaiNeeds, project: Project) -> Iterator[Check]:
    wanted = [split_claim(mount)[2] for mount in needs.profile.mounts]
    if not wanted:
        return
    try:
        claims = {
            claim.claim: claim for claim in cluster.retry_after_disconnect(lambda: cluster.api.claims(project.id))
        }
    except ApiError as error:
        yield _unknown("claims", "Volume claims", ", ".join(wanted), error)
        return
    for name in wanted:
        claim = claims.get(name)
        if claim is None:
            found = f"not among {', '.join(sorted(claims)) or 'none'}"
            fix = "Use a claim of the project, or create this one in Run:ai under Data sources."
            yield failed("claims", "Volume claim", found, name, fix)
        elif not claim.is_usable:
            yield unserved("claims", "Volume claim", f"{claim.status} {claim.message}".rstrip(), name, _ASK)
        else:
            yield ok("claims", "Volume claim", f"{claim.name}, {claim.status or 'exists'}", name)


def _secrets(cluster: RunaiCluster, needs: RunaiNeeds, project: Project) -> Iterator[Check]:
    profile = needs.profile
    wanted = [("pull-secret", "Pull secret", profile.image_pull_secret)]
    wanted += [("hub-credential", "Hub credential", profile.hub_credential)] if needs.hub else []
    if not any(name for _, _, name in wanted):
        return
    try:
        credentials = cluster.retry_after_disconnect(lambda: cluster.api.credentials(project.id))
    except ApiError as error:
        yield _unknown("pull-secret", "Credentials", "the profile's credentials", error)
        return
    for check, title, name in wanted:
        if not name:
            continue
        fix = "Create it in Run:ai under Credentials, or set another one in the profile."
        credential = next((entry for entry in credentials if name in (entry.name, entry.secret)), None)
        if credential is None:
            yield failed(check, title, "not among the project's credentials", name, fix)
        elif check == "hub-credential" and not (credential.name == name and credential.hub_token):
            found = f"{credential.name}, {credential.kind}, with {', '.join(credential.keys) or 'no entries'}"
            yield failed(check, title, found, f"a generic secret {name} with {' or '.join(HUB_KEYS)}", fix)
        else:
            yield ok(check, title, f"{credential.name}, {credential.kind}", name)


def _unknown(check: str, title: str, needed: str, error: ApiError) -> Check:
    """Make the warning for facts that the application may not read; it does not block."""
    found = _NOT_ALLOWED if error.status in (401, 403, 404) else error.what
    return warning(
        check, title, found, needed, "Run:ai checks it when the workload is created; or give the application a role."
    )
