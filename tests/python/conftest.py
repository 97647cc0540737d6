# SPDX-License-Identifier: MIT
"""Options of test_libraries.py."""


def pytest_addoption(parser):
    parser.addoption("--record", metavar="FILE", help="write the interfaces of all libraries, as in tools/demo")
    parser.addoption("--sanitize", action="store_true", help="build libraries.c with -fsanitize=undefined")
