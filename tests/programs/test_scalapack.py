"""ScaLAPACK's testers, as Debian compiles them with its two MPIs: the same residuals with gapless as without.

They send sections of matrices as MPI_Type_vector, through BLACS. GAPLESS_TEST_PROGRAMS_LONG=1 runs more of them.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

SHIM = os.environ["GAPLESS_TEST_SHIM"]
TESTERS = Path(os.environ["GAPLESS_TEST_SCALAPACK"])
MPIS = [mpi for mpi in ("mpich", "openmpi") if (TESTERS / f"{mpi}-tests").is_dir()]
FEW = ["qr"]
MORE = ["lu", "llt"]
ENVIRONMENT = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "10",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

# What the testers read, for two processes in a row and in a column: numbers of things, and the things themselves.
TWO_PROCESSES = "2\n1 2\n2 1\n"
INPUT = {
    "qr": f"6\n'QR' 'QL' 'LQ' 'RQ' 'QP' 'TZ'\n2\n17 60\n20 80\n1\n4\n5\n{TWO_PROCESSES}5.0\n",
    "lu": f"2\n30 60\n30 50\n1\n8\n1\n3\n1\n2\n{TWO_PROCESSES}1.0\nF\n",
    "llt": f"'U'\n2\n30 60\n1\n8\n1\n3\n1\n2\n{TWO_PROCESSES}3.0\nF\n",
}


def run(mpi, tester, folder, **settings):
    """What the tester says of each of its cases, times left out, and its error stream."""
    folder.mkdir()
    header = f"'{tester}'\n'two processes'\n'out'\n6\n"
    (folder / f"{tester.upper()}.dat").write_text(header + INPUT[tester])
    words = [f"mpiexec.{mpi}", "-n", "2", "env", *(f"{name}={value}" for name, value in settings.items())]
    program = TESTERS / f"{mpi}-tests" / f"xz{tester}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GAPLESS", "LD_"))}
    done = subprocess.run(
        [*words, program], cwd=folder, capture_output=True, text=True, env=environment | ENVIRONMENT, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The last numbers before the verdict are seconds and MFLOPS.
    cases = [re.sub(r"( +[\d.]+){2} +(?=PASSED|FAILED)", " ", line) for line in done.stdout.splitlines()]
    return [line for line in cases if "PASSED" in line or "FAILED" in line or "Finished" in line], done.stderr


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("tester", FEW + (MORE if os.environ.get("GAPLESS_TEST_PROGRAMS_LONG") else []))
def test_residuals(mpi, tester, tmp_path):
    plain, _ = run(mpi, tester, tmp_path / "plain")
    settings = {"LD_PRELOAD": SHIM, "GAPLESS_STATISTICS": 1, "GAPLESS_SCHEME": "packed"}
    gapless, said = run(mpi, tester, tmp_path / "gapless", **settings)
    assert gapless == plain
    assert len(plain) > 4 and not [line for line in plain if line.endswith("FAILED")]
    packed = [int(number) for number in re.findall(r"packed (\d+) messages", said)]
    assert len(packed) == 2 and min(packed) >= 20
