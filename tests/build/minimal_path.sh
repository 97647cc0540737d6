#!/bin/sh
# Both commands of the README in a fresh copy, with nothing on PATH but a C compiler, CMake, make
# and the core utilities. Prints the end of each. CMake looks into /usr/bin whatever PATH says, so
# a first configure forbids that; it stays in the cache.
#
#     tests/build/minimal_path.sh [FOLDER]      the repository; by default the one of this file
set -eu
root=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/source"

for tool in gcc cc as ld ar ranlib nm cmake ctest make sh cat cp cut echo env expr head ls mkdir mv \
    printf pwd rm sed sort tail tr true uname wc; do
    path=$(command -v "$tool") && case $path in /*) ln -s "$path" "$work/bin/$tool" ;; esac
done
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar -c --null -T - -f -) |
    tar -x -C "$work/source" -f -

run() {
    echo "== $1"
    (cd "$work/source" && env -i PATH="$work/bin" HOME="$work" CTEST_PARALLEL_LEVEL=2 \
        CMAKE_BUILD_PARALLEL_LEVEL=2 "$work/bin/sh" -c "$1" >"$work/log" 2>&1) && status=0 || status=$?
    grep -a 'for want of' "$work/log" || true
    tail -n "$2" "$work/log"
    return "$status"
}
run 'cmake -B build -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF' 1
run 'cmake -B build && cmake --build build --target demo' 30
run 'cmake -B build && cmake --build build && ctest --test-dir build --output-on-failure' 60
