"""The rig's real Slurm, its faults and the recovery from them."""

from __future__ import annotations

from tests.kit.waiting import until
from tests.rig.cluster import Rig


def test_a_job_on_two_nodes_sees_two_hosts_and_their_gpus(rig: Rig) -> None:
    line = "srun --nodes=2 --gpus-per-node=8 sh -c 'echo \"$(hostname) $CUDA_VISIBLE_DEVICES\"'"
    done = rig.as_operator(line, check=True)
    assert sorted(done.stdout.split("\n")[:-1]) == ["cn001 0,1,2,3,4,5,6,7", "cn002 0,1,2,3,4,5,6,7"]


def test_a_node_of_the_other_kind_has_four_gpus(rig: Rig) -> None:
    done = rig.as_operator("srun -A llmb_other -p small --gpus-per-node=4 printenv CUDA_VISIBLE_DEVICES", check=True)
    assert done.stdout == "0,1,2,3\n"
    refused = rig.as_operator("sbatch -p small --gpus-per-node=8 --wrap true")
    assert "Requested node configuration is not available" in refused.stderr


def test_accounting_lists_a_finished_job_with_its_gpus(rig: Rig) -> None:
    job = rig.as_operator("sbatch --parsable --wait --gpus-per-node=8 --output=/dev/null --wrap true", check=True)
    ask = f"sacct -X -n -P -j {job.stdout.strip()} -o State,AllocTRES,Account"
    row = until(lambda: rig.as_operator(ask).stdout, "sacct lists the job")
    state, resources, account = row.strip().split("|")
    assert (state, account) == ("COMPLETED", "llmbench")
    assert "gres/gpu=8" in resources


def test_the_second_qos_has_limits(rig: Rig) -> None:
    refused = rig.as_operator("sbatch --qos=short --time=30 --wrap true")
    assert "Job violates accounting/QOS policy" in refused.stderr


def test_pmix_works(rig: Rig) -> None:
    done = rig.as_operator("srun --mpi=pmix --nodes=2 --ntasks-per-node=4 hostname", check=True)
    assert done.stdout.split().count("cn001") == done.stdout.split().count("cn002") == 4


def test_squeue_times_out_with_slurms_message_when_the_controller_hangs(rig: Rig) -> None:
    with rig.controller_hung():
        output = rig.as_operator("squeue").stderr
    assert "Socket timed out on send/recv operation" in output
    assert rig.as_operator("squeue").returncode == 0


def test_a_restarted_controller_knows_its_jobs(rig: Rig) -> None:
    job = rig.as_operator("sbatch --parsable --hold --wrap true", check=True).stdout.strip()
    with rig.controller_down():
        output = rig.as_operator(["squeue"]).stderr
    assert "Unable to contact slurm controller (connect failure)" in output
    assert rig.squeue() == [job]
    assert rig.as_operator("srun --nodes=4 true").returncode == 0


def test_without_the_database_sacct_fails_and_squeue_works(rig: Rig) -> None:
    with rig.database_down():
        assert "Connection refused" in rig.as_operator("sacct").stderr
        assert rig.as_operator("squeue").returncode == 0
    assert rig.as_operator("sacct").returncode == 0


def test_a_node_failure_ends_its_job(rig: Rig) -> None:
    submit = "sbatch --parsable --no-requeue --nodelist=cn003 --output=/dev/null --wrap 'sleep 100'"
    job = rig.as_operator(submit, check=True).stdout.strip()
    state = f"squeue --noheader --format=%T --states=all --jobs={job}"
    until(lambda: rig.as_operator(state).stdout == "RUNNING\n", "the job runs")
    with rig.node_down("cn003"):
        until(lambda: rig.as_operator(state).stdout == "NODE_FAIL\n", "the job has failed")
    assert rig.as_operator("srun --nodelist=cn003 hostname").stdout == "cn003\n"


def test_a_reservation_holds_its_nodes(rig: Rig) -> None:
    with rig.reservation(nodes="cn[001-004]"):
        waiting = rig.as_operator("sbatch --parsable --nodes=1 --wrap true", check=True).stdout.strip()
        assert rig.as_operator("srun --reservation=bench hostname").returncode == 0
        assert waiting in rig.squeue()


def test_tidying_leaves_no_job_and_no_fault(rig: Rig) -> None:
    rig.as_operator("sbatch --output=/dev/null --wrap 'sleep 100'", check=True)
    rig.set("faults/slow", "3")
    rig.set("speed", "1")
    rig.tidy()
    assert rig.squeue() == []
    assert list((rig.knobs / "faults").iterdir()) == []
    assert (rig.knobs / "speed").read_text() != "1"


def test_without_accounting_sacct_reports_it(rig_without_accounting: Rig) -> None:
    assert "Slurm accounting storage is disabled" in rig_without_accounting.as_operator("sacct").stderr
    assert rig_without_accounting.as_operator("srun hostname").stdout == "cn001\n"
