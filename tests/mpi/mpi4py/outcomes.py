"""Runs mpi4py's own test suite on one rank and writes down what became of each test.

A line of JSON when a test starts and one when it ends, so that a crash names its test: a start without an end. The last
line says that the suite has come to its end.
"""

import json
import os
import pathlib
import sys
import time
import unittest

prefix, test_directory = sys.argv[1:3]
rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
# Open until the process ends, however it ends.
log = pathlib.Path(f"{prefix}.{rank}.jsonl").open("w", buffering=1)  # noqa: SIM115


class Recorder(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        self.outcome = "passed"
        log.write(json.dumps({"test": test.id()}) + "\n")

    def stopTest(self, test):
        super().stopTest(test)
        seconds = round(time.monotonic() - self.started, 3)
        log.write(json.dumps({"test": test.id(), "outcome": self.outcome, "seconds": seconds}) + "\n")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.outcome = "failed"

    def addError(self, test, error):
        super().addError(test, error)
        self.outcome = "failed"

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.outcome = "failed"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome = "skipped"

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.outcome = "failed as expected"


def serve_gpu_arrays():
    """Has the suite test all of MPI on CuPy's arrays, with the values that it gives host arrays."""
    sys.modules["numba"] = None  # as the suite has it where Numba is not asked for, though only after this import
    import arrayimpl
    import mpiunittest
    import numpy

    # The suite leaves out of GPU memory what MPI libraries get wrong by themselves.
    mpiunittest.is_mpi_gpu = lambda _library, _array: False

    # CuPy refuses -1 for an unsigned number, of which the suite's other arrays make the largest one.
    make = arrayimpl.GPUArrayCuPy.__init__

    def make_of_any(self, values, typecode, *rest, **named):
        if typecode in "BHILQ":
            values = numpy.asarray(values).astype(typecode)
            values = values if values.shape else int(values)
        make(self, values, typecode, *rest, **named)

    arrayimpl.GPUArrayCuPy.__init__ = make_of_any


sys.path.insert(0, test_directory)
sys.argv = [str(pathlib.Path(test_directory, "main.py")), *sys.argv[3:]]
suite = __import__("main")
suite.__file__ = sys.argv[0]
if "--cupy" in sys.argv:
    serve_gpu_arrays()
try:
    suite.main(module=None, testRunner=unittest.TextTestRunner(resultclass=Recorder))
except SystemExit:  # how unittest ends, and no other exception does
    log.write(json.dumps({"end": True}) + "\n")
    raise
