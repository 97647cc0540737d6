# SPDX-License-Identifier: MIT
"""Options of test_libraries.py."""


def pytest_addoption(parser):
    parser.addoption("--sanitize", action="store_true", help="build libraries.c with -fsanitize=undefined")
    parser.addoption("--include", metavar="FOLDER", help="headers that libraries.c takes before those of the project")
