/* test_streams.c - the three decoders of stream numbers.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

enum { UNTOUCHED = 55 };

static int32_t sync;
static uint64_t stream;
static cai_error err;

static const cai_token *value_of(const char *text)
{
    help_reset();
    cai_test_note(text ? text : "absent");
    sync = UNTOUCHED;
    stream = UNTOUCHED;
    help_fill(&err, sizeof err);
    return text ? help_run(text) : NULL;
}

static void check_result(cai_status status, cai_status wanted, int32_t wanted_sync,
                         uint64_t wanted_stream)
{
    CHECK_INT(status, wanted);
    if (status == CAI_OK) {
        CHECK(help_filled(&err, sizeof err));
        CHECK_INT(sync, wanted_sync);
        CHECK_UINT(stream, wanted_stream);
        return;
    }
    CHECK_INT(err.code, status);
    CHECK_INT(err.entry, CAI_ENTRY_STREAM);
    CHECK(memchr(err.message, 0, sizeof err.message) != NULL && strlen(err.message) > 10);
    CHECK_INT(sync, UNTOUCHED);
    CHECK_UINT(stream, UNTOUCHED);
}

/* ------------------------------------------------------------------ interface, DLPack */

#define HALF ((uint64_t)1 << 63)

typedef struct row {
    const char *text;
    int32_t interface_status;
    int32_t dlpack_status;
    uint64_t number;
} row;

/* The values that both protocols judge alike, or not. */
static const row rows[] = {
    {"1", CAI_OK, CAI_OK, 1},
    {"2", CAI_OK, CAI_OK, 2},
    {"3", CAI_OK, CAI_OK, 3},
    {"140735340871680", CAI_OK, CAI_OK, 140735340871680},
    {"9223372036854775807", CAI_OK, CAI_OK, INT64_MAX},
    {"9223372036854775808", CAI_OK, CAI_OK, HALF},
    {"18446744073709551615", CAI_OK, CAI_OK, UINT64_MAX},
    {"0", CAI_ERR_STREAM, CAI_ERR_STREAM, 0},
    {"-2", CAI_ERR_STREAM, CAI_ERR_STREAM, 0},
    {"-9223372036854775808", CAI_ERR_STREAM, CAI_ERR_STREAM, 0},
    {"18446744073709551616", CAI_ERR_STREAM, CAI_ERR_STREAM, 0},
    {"-9223372036854775809", CAI_ERR_STREAM, CAI_ERR_STREAM, 0},
    {"True", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"False", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"'1'", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"b'1'", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"1.0", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"np(1)", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"(1,)", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"(0,1)", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"[1]", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"()", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"{}", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"obj", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
    {"?", CAI_ERR_TYPE, CAI_ERR_TYPE, 0},
};

static void check_interface_row(const char *text, int32_t status, int32_t wanted_sync,
                                uint64_t number, int32_t version)
{
    const cai_token *value = value_of(text);
    check_result(cai_decode_stream_interface(value, version, &sync, &stream, &err), status,
                 wanted_sync, number);
    value = value_of(text);
    CHECK_INT(cai_decode_stream_interface(value, version, &sync, &stream, NULL), status);
}

static void check_interface(void)
{
    int32_t version;
    size_t i;
    for (version = 0; version <= 5; version++) {
        int32_t silent = version >= 3 ? CAI_SYNC_NONE : CAI_SYNC_UNKNOWN;
        for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            check_interface_row(rows[i].text, rows[i].interface_status, CAI_SYNC_STREAM,
                                rows[i].number, version);
        }
        check_interface_row(NULL, CAI_OK, silent, 0, version);
        check_interface_row("-1", CAI_ERR_STREAM, 0, 0, version);
    }
    for (version = 0; version <= 5; version++) {
        check_interface_row("None", CAI_OK, CAI_SYNC_NONE, 0, version);
    }
}

/* The decoder says of a value what cai_import says of the entry. */
static void check_as_import(void)
{
    int32_t version;
    size_t i;
    for (version = 0; version <= 4; version++) {
        for (i = 0; i <= sizeof rows / sizeof rows[0]; i++) {
            const char *text = i ? rows[i - 1].text : "None";
            char dictionary[80];
            cai_array a;
            cai_status status;
            const cai_token *value = value_of(text);
            sprintf(dictionary, "version=%d; stream=%s", (int)version, text);
            memset(&a, 0, sizeof a);
            status = cai_decode_stream_interface(value, version, &sync, &stream, NULL);
            CHECK_INT(cai_import(help_dict(dictionary), NULL, &a, NULL), status);
            if (status != CAI_OK) continue;
            CHECK_INT(a.sync, sync);
            CHECK_UINT(a.stream, stream);
        }
    }
}

static void check_dlpack_row(const char *text, int32_t status, int32_t wanted_sync,
                             uint64_t number)
{
    const cai_token *value = value_of(text);
    check_result(cai_decode_stream_dlpack(value, &sync, &stream, &err), status, wanted_sync, number);
    value = value_of(text);
    CHECK_INT(cai_decode_stream_dlpack(value, &sync, &stream, NULL), status);
}

static void check_dlpack(void)
{
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_dlpack_row(rows[i].text, rows[i].dlpack_status, CAI_SYNC_STREAM, rows[i].number);
    }
    check_dlpack_row(NULL, CAI_OK, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    check_dlpack_row("None", CAI_OK, CAI_SYNC_STREAM, CAI_STREAM_LEGACY);
    check_dlpack_row("-1", CAI_OK, CAI_SYNC_NONE, 0);
}

/* ------------------------------------------------------------------ __cuda_stream__ */

static void check_protocol_row(const char *text, int32_t status, uint64_t number)
{
    const cai_token *value = value_of(text);
    cai_status got = cai_decode_stream_protocol(value, &stream, &err);
    if (got == CAI_OK) sync = 0;
    check_result(got, status, 0, number);
    value = value_of(text);
    CHECK_INT(cai_decode_stream_protocol(value, &stream, NULL), status);
}

static void check_protocol(void)
{
    const int wide = sizeof(void *) == 8;
    const char *types[] = {"None",      "True",       "0",          "7",        "1.0",  "'(0,7)'",
                           "{}",        "obj",        "?",          "np(0)",    "b''",  "()",
                           "(0,)",      "(0,7,8)",    "(0,'7')",    "(0,None)", "[]",   "(0,True)",
                           "(0,7.0)",   "(0,np(7))",  "(np(0),7)",  "(True,7)", "(False,7)",
                           "('0',7)",   "(None,7)",   "(0.0,7)",    "((0,),7)", "(0,(7,))",
                           "(0,obj)",   "((0,7),)",   "[0]",        "[0,7,8]"};
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++) {
        const cai_token *value = value_of(types[i]);
        cai_status status = cai_decode_stream_protocol(value, &stream, &err);
        CHECK(status == CAI_ERR_TYPE || status == CAI_ERR_STREAM);
        CHECK_INT(err.code, status);
        CHECK_UINT(stream, UNTOUCHED);
        value = value_of(types[i]);
        CHECK_INT(cai_decode_stream_protocol(value, &stream, NULL), status);
    }
    check_protocol_row("(0,7)", CAI_OK, 7);
    check_protocol_row("[0,7]", CAI_OK, 7);
    check_protocol_row("(0,0)", CAI_OK, CAI_STREAM_LEGACY);
    check_protocol_row("(0,1)", CAI_OK, 1);
    check_protocol_row("(0,2)", CAI_OK, 2);
    check_protocol_row("(0,4294967295)", CAI_OK, 4294967295u);
    check_protocol_row("(0,4294967296)", wide ? CAI_OK : CAI_ERR_STREAM, (uint64_t)1 << 32);
    check_protocol_row("(0,140735340871680)", wide ? CAI_OK : CAI_ERR_STREAM, 140735340871680);
    check_protocol_row("(0,9223372036854775808)", wide ? CAI_OK : CAI_ERR_STREAM, HALF);
    check_protocol_row("(0,18446744073709551615)", wide ? CAI_OK : CAI_ERR_STREAM, UINT64_MAX);
    check_protocol_row("(0,18446744073709551616)", CAI_ERR_STREAM, 0);
    check_protocol_row("(0,-1)", CAI_ERR_STREAM, 0);
    check_protocol_row("(0,-9223372036854775808)", CAI_ERR_STREAM, 0);
    check_protocol_row("(1,7)", CAI_ERR_VERSION, 0);
    check_protocol_row("(-1,7)", CAI_ERR_VERSION, 0);
    check_protocol_row("(4294967296,7)", CAI_ERR_VERSION, 0);
    check_protocol_row("(9223372036854775807,7)", CAI_ERR_VERSION, 0);
}

static void check_big_versions(void)
{
    const char *texts[] = {"(9223372036854775808,7)", "(18446744073709551616,7)"};
    int i;
    for (i = 0; i < 2; i++) {
        const cai_token *value = value_of(texts[i]);
        CHECK(cai_decode_stream_protocol(value, &stream, &err) != CAI_OK);
        CHECK_UINT(stream, UNTOUCHED);
    }
}

/* ------------------------------------------------------------------ messages */

/* The item of the tuple at fault. */
static void check_items(void)
{
    const char *texts[] = {"7", "(0,)", "('0',7)", "(1,7)", "(0,'7')", "(0,-7)",
                           "(0,18446744073709551616)"};
    const int32_t items[] = {-1, -1, 0, 0, 1, 1, 1};
    size_t i;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK(cai_decode_stream_protocol(value_of(texts[i]), &stream, &err) != CAI_OK);
        CHECK_INT(err.index, items[i]);
    }
}

static void check_message(cai_status status, const char *part, const char *other)
{
    CHECK(status != CAI_OK);
    CHECK(strstr(err.message, part) != NULL);
    CHECK(strstr(err.message, other) != NULL);
}

static void check_messages(void)
{
    check_message(cai_decode_stream_interface(value_of("0"), 3, &sync, &stream, &err), "stream = 0",
                  "ambiguous");
    check_message(cai_decode_stream_interface(value_of("-1"), 3, &sync, &stream, &err),
                  "stream = -1", "DLPack");
    check_message(cai_decode_stream_interface(value_of("-7"), 3, &sync, &stream, &err),
                  "stream = -7", "negative");
    check_message(cai_decode_stream_interface(value_of("'7'"), 3, &sync, &stream, &err), "int",
                  "a str");
    check_message(cai_decode_stream_dlpack(value_of("0"), &sync, &stream, &err), "stream = 0",
                  "DLPack");
    check_message(cai_decode_stream_dlpack(value_of("-2"), &sync, &stream, &err), "stream = -2",
                  "-1");
    check_message(cai_decode_stream_protocol(value_of("(1,7)"), &stream, &err), "version 1", "0");
    check_message(cai_decode_stream_protocol(value_of("(0,-7)"), &stream, &err), "handle", "-7");
    check_message(cai_decode_stream_protocol(value_of("('x',1.0)"), &stream, &err), "int", "a str");
    check_message(cai_decode_stream_protocol(value_of("(0,'x')"), &stream, &err), "int", "a str");
    {
        const cai_token strange = {-5, 0, 7, NULL};
        check_message(cai_decode_stream_interface(&strange, 3, &sync, &stream, &err), "int",
                      "unknown kind");
    }
    cai_test_note("");
}

static void run(void)
{
    check_interface();
    check_as_import();
    check_dlpack();
    check_protocol();
    check_big_versions();
    check_items();
    check_messages();
}

CAI_TEST_MAIN(run)
