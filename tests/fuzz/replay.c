/* replay.c - runs a fuzz target on files, with any compiler and without libFuzzer:
 *
 *     cc -I. tests/fuzz/replay.c tests/fuzz/fuzz_import.c -o replay_import
 *     ./replay_import FILE...
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    enum { LIMIT = 1 << 20 };
    uint8_t *data = (uint8_t *)malloc(LIMIT);
    FILE *file = fopen(path, "rb");
    size_t size = 0;
    int failed = !data || !file;
    if (!failed) size = fread(data, 1, LIMIT, file);
    if (file) failed |= ferror(file) != 0, (void)fclose(file);
    if (failed) fprintf(stderr, "%s: cannot be read\n", path);
    else (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed;
}

int main(int argc, char **argv)
{
    int i, failed = 0;
    for (i = 1; i < argc; i++) failed |= replay(argv[i]);
    printf("%d inputs replayed\n", argc - 1);
    return failed;
}
