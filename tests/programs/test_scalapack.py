"""ScaLAPACK's testers, as Debian compiles them with its two MPIs: the same residuals, or verdicts, as without gapless.

They send sections of matrices as MPI_Type_vector, through BLACS. GAPLESS_TEST_PROGRAMS_LONG=1 runs more of them.
"""

import os
import re
from pathlib import Path

import pytest
from launching import PACKED, launch, packed_messages

TESTERS = Path(os.environ["GAPLESS_TEST_SCALAPACK"])
MPIS = [mpi for mpi in ("mpich", "openmpi") if (TESTERS / f"{mpi}-tests").is_dir()]
FEW = ["qr"]
MORE = ["lu", "llt"]
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}

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
    program = TESTERS / f"{mpi}-tests" / f"xz{tester}"
    done = launch(f"mpiexec.{mpi}", 2, [program], settings, seconds=120, environment=ENVIRONMENT, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    # The numbers with a decimal point before the verdict are seconds and MFLOPS.
    cases = [re.sub(r"( +\d+\.\d*)+ +(?=PASSED|FAILED)", " ", line) for line in done.stdout.splitlines()]
    return [line for line in cases if "PASSED" in line or "FAILED" in line or "Finished" in line], done.stderr


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("tester", FEW + (MORE if os.environ.get("GAPLESS_TEST_PROGRAMS_LONG") else []))
def test_residuals(mpi, tester, tmp_path):
    plain, _ = run(mpi, tester, tmp_path / "plain")
    gapless, said = run(mpi, tester, tmp_path / "gapless", **PACKED)
    assert gapless == plain
    assert len(plain) > 4 and not [line for line in plain if line.endswith("FAILED")]
    packed = packed_messages(said)
    assert len(packed) == 2 and min(packed) >= 20
