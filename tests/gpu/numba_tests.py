#!/usr/bin/env python3
"""Those tests of numba-cuda that are about memory, streams and contexts, with the manager of the environment.

    [NUMBA_CUDA_MEMORY_MANAGER=cai_numba] numba_tests.py
"""

import collections
import importlib
import importlib.util
import pathlib
import sys

import pytest

TESTS = "numba.cuda.tests"
NAMES = """
    cudadrv.test_emm_plugins cudadrv.test_array_attr cudadrv.test_cuda_memory cudadrv.test_cuda_ndarray
    cudadrv.test_host_alloc cudadrv.test_pinned cudadrv.test_deallocations cudadrv.test_context_stack
    cudadrv.test_events cudapy.test_cuda_array_interface cudadrv.test_streams cudadrv.test_cuda_driver
    cudadrv.test_cuda_devicerecord cudapy.test_ipc cudadrv.test_managed_alloc cudapy.test_array
    cudapy.test_record_dtype cudapy.test_gufunc cudadrv.test_cuda_array_slicing cudapy.test_multithreads
    cudadrv.test_reset_device
""".split()


def files():
    """Imports each module under both names that tests use. Children of a test import this file again."""
    for name in NAMES:
        found = importlib.util.find_spec(f"{TESTS}.{name}")
        if not found:
            print("not there:", name)
            continue
        try:
            sys.modules[f"cuda.tests.{name}"] = importlib.import_module(f"{TESTS}.{name}")
        except ImportError as error:
            print("not imported:", name, error)
            continue
        yield found.origin


FILES = list(files())


class Results:
    """What becomes of each test."""

    def __init__(self):
        self.counts = collections.Counter()

    @pytest.fixture
    def initialize_from_pytest_config(self, request):
        request.instance._dump_failed_filechecks = False

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.failed:
            print("failed:", report.nodeid)


if __name__ == "__main__":
    results = Results()
    root = pathlib.Path(importlib.import_module(TESTS).__file__).parent
    options = ["-q", "--continue-on-collection-errors", "-p", "no:cacheprovider", "--tb=short"]
    options += ["-o", "addopts=", "--import-mode=importlib", f"--rootdir={root}"]
    status = pytest.main([*options, *FILES], plugins=[results])
    print(dict(results.counts))
    sys.exit(int(status))
