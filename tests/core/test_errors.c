/* test_errors.c - every rejection: status, entry, index, message, and that nothing was written.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

/* SAME: lenient refuses with the same words. FORGIVEN: lenient accepts. OTHER: lenient forgives
 * this and finds another fault. REFUSED: lenient refuses, strict has more to say. */
enum { SAME = 0, FORGIVEN = 1, OTHER = 2, REFUSED = 3 };

typedef struct row {
    const char *text; /* what help_dict changes of a good dictionary */
    int32_t lenient;
    int32_t status;
    int32_t entry;
    int32_t index;
    const char *message; /* without "(accepted by CAI_LENIENT)" */
} row;

#define SHAPE(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_SHAPE, index, message}
#define TYPESTR(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_TYPESTR, index, message}
#define DATA(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_DATA, index, message}
#define VERSION(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_VERSION, index, message}
#define STRIDES(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_STRIDES, index, message}
#define STREAM(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_STREAM, index, message}
#define DESCR(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_DESCR, index, message}
#define MASK(lenient, status, index, text, message) \
    {text, lenient, CAI_ERR_##status, CAI_ENTRY_MASK, index, message}

#define ONES_8 "1,1,1,1,1,1,1,1,"
#define ONES_64 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8 ONES_8
#define NEST_8 "[('a',[('a',[('a',[('a',[('a',[('a',[('a',[('a',"
#define TSEN_8 ")])])])])])])])]"
#define NEST_32 NEST_8 NEST_8 NEST_8 NEST_8
#define TSEN_32 TSEN_8 TSEN_8 TSEN_8 TSEN_8
#define GOOD_MASK "typestr='|b1'; data=(8192,False); version=3"

static const row shape_rows[] = {
    SHAPE(SAME, MISSING, -1, "!shape", "shape is missing"),
    SHAPE(SAME, TYPE, -1, "shape=None", "shape must be a tuple, not None"),
    SHAPE(SAME, TYPE, -1, "shape=5", "shape must be a tuple, not an int"),
    SHAPE(SAME, TYPE, -1, "shape='23'", "shape must be a tuple, not a str"),
    SHAPE(SAME, TYPE, -1, "shape=obj", "shape must be a tuple, not an object"),
    SHAPE(SAME, TYPE, -1, "shape={}", "shape must be a tuple, not a dict"),
    SHAPE(SAME, TYPE, -1, "shape=?",
          "shape must be a tuple, not a value of unknown kind"),
    SHAPE(SAME, TYPE, -1, "shape=True", "shape must be a tuple, not a bool"),
    SHAPE(SAME, TYPE, -1, "shape=np(3)", "shape must be a tuple, not an object with __index__"),
    SHAPE(FORGIVEN, TYPE, -1, "shape=[2,3]", "shape must be a tuple, not a list"),
    SHAPE(SAME, TYPE, 0, "shape=(2.0,3)", "shape[0] must be an int, not a float"),
    SHAPE(SAME, TYPE, 1, "shape=(2,None)", "shape[1] must be an int, not None"),
    SHAPE(SAME, TYPE, 1, "shape=(2,True)", "shape[1] must be an int, not a bool"),
    SHAPE(SAME, TYPE, 1, "shape=(2,'3')", "shape[1] must be an int, not a str"),
    SHAPE(SAME, TYPE, 1, "shape=(2,(3,))", "shape[1] must be an int, not a tuple"),
    SHAPE(SAME, TYPE, 1, "shape=(2,[])", "shape[1] must be an int, not a list"),
    SHAPE(SAME, TYPE, 0, "shape=(?,3)",
          "shape[0] must be an int, not a value of unknown kind"),
    SHAPE(SAME, TYPE, 0, "shape=(obj,3)", "shape[0] must be an int, not an object"),
    SHAPE(SAME, TYPE, 0, "shape=({},3)", "shape[0] must be an int, not a dict"),
    SHAPE(SAME, TYPE, 0, "shape=(b'2',3)", "shape[0] must be an int, not bytes"),
    SHAPE(FORGIVEN, TYPE, 0, "shape=(np(2),3)",
          "shape[0] must be an int, not an object with __index__"),
    SHAPE(OTHER, TYPE, 0, "shape=(np(-2),3)",
          "shape[0] must be an int, not an object with __index__"),
    SHAPE(SAME, SHAPE, 0, "shape=(-1,3)", "shape[0] = -1 is negative"),
    SHAPE(SAME, SHAPE, 1, "shape=(2,-9223372036854775808)",
          "shape[1] = -9223372036854775808 is negative"),
    SHAPE(SAME, SHAPE, 0, "shape=(9223372036854775808,)",
          "shape[0] = 9223372036854775808 exceeds 9223372036854775807"),
    SHAPE(SAME, SHAPE, 0, "shape=(18446744073709551616,)",
          "shape[0] is an int that 64 bits cannot hold"),
    SHAPE(SAME, SHAPE, 0, "shape=(-9223372036854775809,)",
          "shape[0] is an int that 64 bits cannot hold"),
    SHAPE(SAME, SHAPE, -1, "shape=(" ONES_64 "1)", "shape has 65 dimensions, the limit is 64"),
    SHAPE(SAME, SHAPE, -1, "shape=(" ONES_64 ONES_8 "1)",
          "shape has 73 dimensions, the limit is 64"),
    SHAPE(SAME, SHAPE, 0, "shape=(1099511627776,1099511627776)",
          "shape[0] = 1099511627776 makes the array larger than 9223372036854775807 bytes"),
    SHAPE(SAME, SHAPE, 1, "shape=(0,4611686018427387904,8)",
          "shape[1] = 4611686018427387904 makes the array larger than 9223372036854775807 bytes"),
    SHAPE(SAME, SHAPE, 0, "shape=(4611686018427387904,)",
          "shape[0] = 4611686018427387904 makes the array larger than 9223372036854775807 bytes"),
    SHAPE(SAME, SHAPE, 0, "shape=(3,3074457345618258603); typestr='|u1'",
          "shape[0] = 3 makes the array larger than 9223372036854775807 bytes"),
    SHAPE(SAME, SHAPE, 0, "shape=(9223372036854775807,); typestr='|t9'",
          "shape[0] = 9223372036854775807 makes the array larger than 9223372036854775807 bytes"),
    SHAPE(OTHER, TYPE, -1, "shape=[2,-3]", "shape must be a tuple, not a list"),
};

static const row typestr_rows[] = {
    TYPESTR(SAME, MISSING, -1, "!typestr", "typestr is missing"),
    TYPESTR(SAME, TYPE, -1, "typestr=None", "typestr must be a str, not None"),
    TYPESTR(SAME, TYPE, -1, "typestr=4", "typestr must be a str, not an int"),
    TYPESTR(SAME, TYPE, -1, "typestr=('<f4',)", "typestr must be a str, not a tuple"),
    TYPESTR(SAME, TYPE, -1, "typestr=obj", "typestr must be a str, not an object"),
    TYPESTR(SAME, TYPE, -1, "typestr=?",
            "typestr must be a str, not a value of unknown kind"),
    TYPESTR(FORGIVEN, TYPE, -1, "typestr=b'<f4'", "typestr must be a str, not bytes"),
    TYPESTR(OTHER, TYPE, -1, "typestr=b'<f5'", "typestr must be a str, not bytes"),
    TYPESTR(FORGIVEN, TYPESTR, 0, "typestr='=f4'",
            "typestr '=f4' is not valid at 0: the byte order must be < > or |"),
    TYPESTR(FORGIVEN, TYPESTR, 0, "typestr='f4'",
            "typestr 'f4' is not valid at 0: the byte order must be < > or |"),
    TYPESTR(REFUSED, TYPESTR, 0, "typestr=''",
            "typestr '' is not valid at 0: the byte order must be < > or |"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<'",
            "typestr '<' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<f'",
            "typestr '<f' is not valid at 2: the size must be in decimal digits"),
    TYPESTR(REFUSED, TYPESTR, 0, "typestr='?'",
            "typestr '?' is not valid at 0: the byte order must be < > or |"),
    TYPESTR(REFUSED, TYPESTR, 0, "typestr=' <f4'",
            "typestr ' <f4' is not valid at 0: the byte order must be < > or |"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<f4 '",
            "typestr '<f4 ' is not valid at 3: something follows the size"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<f4\\x00'",
            "typestr '<f4\\x00' is not valid at 3: something follows the size"),
    TYPESTR(REFUSED, TYPESTR, 0, "typestr='(2,)<f4'",
            "typestr '(2,)<f4' is not valid at 0: the byte order must be < > or |"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<\\x7f4'",
            "typestr '<\\x7f4' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<\\x104'",
            "typestr '<\\x104' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<\\x014'",
            "typestr '<\\x014' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<f4 a name of many more bytes than forty, cut'",
            "typestr '<f4 a name of many more bytes than forty...' is not valid at 3: something "
            "follows the size"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<x4'",
            "typestr '<x4' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<q8'",
            "typestr '<q8' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<e2'",
            "typestr '<e2' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<F8'",
            "typestr '<F8' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='|O8'",
            "typestr '|O8' is not valid at 1: Python objects cannot live in device memory"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<i+4'",
            "typestr '<i+4' is not valid at 2: the size must be in decimal digits"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<i-4'",
            "typestr '<i-4' is not valid at 2: the size must be in decimal digits"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<i04'",
            "typestr '<i04' is not valid at 2: the size must be in decimal digits"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<f3'",
            "typestr '<f3' is not valid at 2: the kind has no such size"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<f0'", "typestr '<f0' is not valid at 2: the size is 0"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<b4'",
            "typestr '<b4' is not valid at 2: the kind has no such size"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<i16'",
            "typestr '<i16' is not valid at 2: the kind has no such size"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='|S0'", "typestr '|S0' is not valid at 2: the size is 0"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='|V99999999999'",
            "typestr '|V99999999999' is not valid at 2: the size exceeds 2147483647 bytes"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='|V99999999999999999999999999'",
            "typestr '|V99999999999999999999999999' is not valid at 2: the size exceeds "
            "2147483647 bytes"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='|V2147483648'",
            "typestr '|V2147483648' is not valid at 2: the size exceeds 2147483647 bytes"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<U536870912'",
            "typestr '<U536870912' is not valid at 2: the size exceeds 2147483647 bytes"),
    TYPESTR(SAME, TYPESTR, 2, "typestr='<M4[ns]'",
            "typestr '<M4[ns]' is not valid at 2: the kind has no such size"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<f4[ns]'",
            "typestr '<f4[ns]' is not valid at 3: something follows the size"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<m8[xs]'",
            "typestr '<m8[xs]' is not valid at 3: NumPy has no such unit"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<m8[]'",
            "typestr '<m8[]' is not valid at 3: NumPy has no such unit"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<m8[0s]'",
            "typestr '<m8[0s]' is not valid at 3: the multiple is not in 1..2147483647"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<m8[2147483648s]'",
            "typestr '<m8[2147483648s]' is not valid at 3: the multiple is not in 1..2147483647"),
    TYPESTR(SAME, TYPESTR, 3, "typestr='<m8[s'",
            "typestr '<m8[s' is not valid at 3: NumPy has no such unit"),
    TYPESTR(SAME, TYPESTR, 6, "typestr='<m8[s]]'",
            "typestr '<m8[s]]' is not valid at 6: something follows the size"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<\xc3\xbc\x34'",
            "typestr '<\\xc3\\xbc4' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
};

static const row data_rows[] = {
    DATA(SAME, MISSING, -1, "!data", "data is missing"),
    DATA(SAME, TYPE, -1, "data=None", "data must be a tuple (pointer, read-only), not None"),
    DATA(SAME, TYPE, -1, "data=4096", "data must be a tuple (pointer, read-only), not an int"),
    DATA(SAME, TYPE, -1, "data=b'1234'", "data must be a tuple (pointer, read-only), not bytes"),
    DATA(SAME, TYPE, -1, "data=obj", "data must be a tuple (pointer, read-only), not an object"),
    DATA(FORGIVEN, TYPE, -1, "data=[4096,False]",
         "data must be a tuple (pointer, read-only), not a list"),
    DATA(SAME, DATA, -1, "data=()", "data has length 0, it must be 2 (pointer, read-only)"),
    DATA(SAME, DATA, -1, "data=(4096,)", "data has length 1, it must be 2 (pointer, read-only)"),
    DATA(FORGIVEN, DATA, -1, "data=(4096,False,None)",
         "data has length 3, it must be 2 (pointer, read-only)"),
    DATA(SAME, TYPE, 0, "data=(True,False)", "data[0], the pointer, must be an int, not a bool"),
    DATA(SAME, TYPE, 0, "data=('0x7f00',False)", "data[0], the pointer, must be an int, not a str"),
    DATA(SAME, TYPE, 0, "data=(4096.0,False)", "data[0], the pointer, must be an int, not a float"),
    DATA(SAME, TYPE, 0, "data=((4096,False),False)",
         "data[0], the pointer, must be an int, not a tuple"),
    DATA(SAME, TYPE, 0, "data=(None,False)", "data[0], the pointer, must be an int, not None"),
    DATA(FORGIVEN, TYPE, 0, "shape=(2,0); data=(None,False)",
         "data[0], the pointer, must be an int, not None"),
    DATA(FORGIVEN, TYPE, 0, "data=(np(4096),False)",
         "data[0], the pointer, must be an int, not an object with __index__"),
    DATA(OTHER, TYPE, 0, "data=(np(-1),False)",
         "data[0], the pointer, must be an int, not an object with __index__"),
    DATA(SAME, DATA, 0, "data=(-1,False)", "data[0] = -1 is negative"),
    DATA(SAME, DATA, 0, "data=(18446744073709551616,False)",
         "data[0] is an int that 64 bits cannot hold"),
    DATA(SAME, DATA, 0, "data=(0,False)", "data[0] = 0 (NULL) but the array is not empty"),
    DATA(SAME, DATA, 0, "shape=(); data=(0,False)",
         "data[0] = 0 (NULL) but the array is not empty"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,None)", "data[1], read-only, must be a bool, not None"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,2)", "data[1], read-only, must be a bool, not an int"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,-1)", "data[1], read-only, must be a bool, not an int"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,18446744073709551616)",
         "data[1], read-only, must be a bool, not an int"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,1.5)", "data[1], read-only, must be a bool, not a float"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,'')", "data[1], read-only, must be a bool, not a str"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,b'x')", "data[1], read-only, must be a bool, not bytes"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,())", "data[1], read-only, must be a bool, not a tuple"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,[1])", "data[1], read-only, must be a bool, not a list"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,{})", "data[1], read-only, must be a bool, not a dict"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,obj)", "data[1], read-only, must be a bool, not an object"),
    DATA(FORGIVEN, TYPE, 1, "data=(4096,np(1))",
         "data[1], read-only, must be a bool, not an object with __index__"),
    DATA(SAME, TYPE, 1, "data=(4096,?)",
         "data[1], read-only, must be a bool, not a value of unknown kind"),
};

static const row version_rows[] = {
    VERSION(FORGIVEN, MISSING, -1, "!version", "version is missing"),
    VERSION(SAME, TYPE, -1, "version=None", "version must be an int, not None"),
    VERSION(SAME, TYPE, -1, "version='3'", "version must be an int, not a str"),
    VERSION(SAME, TYPE, -1, "version=3.0", "version must be an int, not a float"),
    VERSION(SAME, TYPE, -1, "version=True", "version must be an int, not a bool"),
    VERSION(SAME, TYPE, -1, "version=(3,)", "version must be an int, not a tuple"),
    VERSION(FORGIVEN, TYPE, -1, "version=np(3)",
            "version must be an int, not an object with __index__"),
    VERSION(OTHER, TYPE, -1, "version=np(-3)",
            "version must be an int, not an object with __index__"),
    VERSION(SAME, VERSION, -1, "version=-1", "version = -1 is not in 0..2147483647"),
    VERSION(SAME, VERSION, -1, "version=2147483648", "version = 2147483648 is not in 0..2147483647"),
    VERSION(SAME, VERSION, -1, "version=18446744073709551615",
            "version is an int that is not in 0..2147483647"),
    VERSION(SAME, VERSION, -1, "version=18446744073709551616",
            "version is an int that is not in 0..2147483647"),
};

static const row strides_rows[] = {
    STRIDES(SAME, TYPE, -1, "strides=12", "strides must be None or a tuple, not an int"),
    STRIDES(SAME, TYPE, -1, "strides='12'", "strides must be None or a tuple, not a str"),
    STRIDES(SAME, TYPE, -1, "strides=False", "strides must be None or a tuple, not a bool"),
    STRIDES(SAME, TYPE, -1, "strides=?",
            "strides must be None or a tuple, not a value of unknown kind"),
    STRIDES(FORGIVEN, TYPE, -1, "strides=[12,4]", "strides must be None or a tuple, not a list"),
    STRIDES(SAME, TYPE, 1, "strides=(12,4.0)", "strides[1] must be an int, not a float"),
    STRIDES(SAME, TYPE, 1, "strides=(12,None)", "strides[1] must be an int, not None"),
    STRIDES(SAME, TYPE, 0, "strides=(True,4)", "strides[0] must be an int, not a bool"),
    STRIDES(FORGIVEN, TYPE, 1, "strides=(12,np(4))",
            "strides[1] must be an int, not an object with __index__"),
    STRIDES(SAME, STRIDES, -1, "strides=()", "strides has length 0, shape has 2"),
    STRIDES(SAME, STRIDES, -1, "strides=(4,)", "strides has length 1, shape has 2"),
    STRIDES(SAME, STRIDES, -1, "strides=(4,4,4)", "strides has length 3, shape has 2"),
    STRIDES(SAME, STRIDES, -1, "shape=(); strides=(4,)", "strides has length 1, shape has 0"),
    STRIDES(SAME, STRIDES, 1, "strides=(12,9223372036854775808)",
            "strides[1] = 9223372036854775808 exceeds 9223372036854775807"),
    STRIDES(SAME, STRIDES, 0, "strides=(18446744073709551616,4)",
            "strides[0] is an int that 64 bits cannot hold"),
    STRIDES(SAME, STRIDES, 0, "strides=(-9223372036854775809,4)",
            "strides[0] is an int that 64 bits cannot hold"),
    STRIDES(SAME, STRIDES, 0, "shape=(3,); strides=(4611686018427387904,)",
            "strides[0] = 4611686018427387904 over 3 elements reaches beyond 64 bits"),
    STRIDES(SAME, STRIDES, 0,
            "shape=(2,2); strides=(9223372036854775800,9223372036854775800)",
            "strides[0] = 9223372036854775800 over 2 elements reaches beyond 64 bits"),
    STRIDES(SAME, STRIDES, 0, "shape=(2,); strides=(9223372036854775805,)",
            "strides[0] = 9223372036854775805 over 2 elements reaches beyond 64 bits"),
    STRIDES(SAME, STRIDES, 0, "shape=(3,); strides=(-9223372036854775808,)",
            "strides[0] = -9223372036854775808 over 3 elements reaches beyond 64 bits"),
    DATA(SAME, DATA, 0, "shape=(2,); strides=(-9223372036854775808,)",
         "data[0] = 4096 but elements begin at -9223372036854775808 from it, below address 0"),
    DATA(SAME, DATA, 0, "shape=(4,); data=(11,False); strides=(-4,)",
         "data[0] = 11 but elements begin at -12 from it, below address 0"),
    DATA(SAME, DATA, 0, "shape=(2,); data=(18446744073709551612,False)",
         "data[0] = 18446744073709551612 but elements reach 8 bytes above it, past 2^64"),
    DATA(SAME, DATA, 0, "shape=(); data=(18446744073709551613,False)",
         "data[0] = 18446744073709551613 but elements reach 4 bytes above it, past 2^64"),
    STRIDES(SAME, STRIDES, -1, "shape=(8,); typestr='|t1'; strides=(1,)",
            "strides must be None or NULL for a bit field: bytes cannot address bits"),
    STRIDES(SAME, STRIDES, -1, "shape=(); typestr='|t1'; strides=()",
            "strides must be None or NULL for a bit field: bytes cannot address bits"),
};

static const row stream_rows[] = {
    STREAM(SAME, STREAM, -1, "stream=0",
           "stream = 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one, None "
           "is no pending work"),
    STREAM(SAME, STREAM, -1, "stream=-1", "stream = -1 is DLPack's number: pass None"),
    STREAM(SAME, STREAM, -1, "stream=-2", "stream = -2 is negative"),
    STREAM(SAME, STREAM, -1, "stream=18446744073709551616",
           "stream is an int that 64 bits cannot hold"),
    STREAM(SAME, TYPE, -1, "stream='1'", "stream must be an int, not a str"),
    STREAM(SAME, TYPE, -1, "stream=1.0", "stream must be an int, not a float"),
    STREAM(SAME, TYPE, -1, "stream=True", "stream must be an int, not a bool"),
    STREAM(SAME, TYPE, -1, "stream=(1,)", "stream must be an int, not a tuple"),
    STREAM(SAME, TYPE, -1, "stream=obj", "stream must be an int, not an object"),
    STREAM(SAME, TYPE, -1, "stream=?",
           "stream must be an int, not a value of unknown kind"),
    STREAM(FORGIVEN, TYPE, -1, "stream=np(7)",
           "stream must be an int, not an object with __index__"),
    STREAM(OTHER, TYPE, -1, "stream=np(0)", "stream must be an int, not an object with __index__"),
};

#define V8 "shape=(2,); typestr='|V8'; descr="
static const row descr_rows[] = {
    DESCR(SAME, TYPE, -1, V8 "8", "descr must be a list, not an int"),
    DESCR(SAME, TYPE, -1, V8 "'<f8'", "descr must be a list, not a str"),
    DESCR(SAME, TYPE, -1, V8 "{}", "descr must be a list, not a dict"),
    DESCR(SAME, TYPE, -1, V8 "?", "descr must be a list, not a value of unknown kind"),
    DESCR(FORGIVEN, TYPE, -1, V8 "(('a','<i4'),('b','<i4'))", "descr must be a list, not a tuple"),
    DESCR(SAME, DESCR, -1, V8 "[]", "descr: a list without fields"),
    DESCR(SAME, TYPE, 0, V8 "['<f8']",
          "descr[0]: a field must be a tuple of 2 or 3 items, not a str"),
    DESCR(SAME, TYPE, 1, V8 "[('a','<i4'),['b','<i4']]",
          "descr[1]: a field must be a tuple of 2 or 3 items, not a list"),
    DESCR(SAME, TYPE, 0, V8 "[('a',)]",
          "descr[0]: a field must be a tuple of 2 or 3 items, not a tuple"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<f8',(),())]",
          "descr[0]: a field must be a tuple of 2 or 3 items, not a tuple"),
    DESCR(SAME, TYPE, 0, V8 "[(5,'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not an int"),
    DESCR(SAME, TYPE, 0, V8 "[(None,'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not None"),
    DESCR(SAME, TYPE, 0, V8 "[(b'a','<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not bytes"),
    DESCR(SAME, TYPE, 0, V8 "[(('t',),'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not a tuple"),
    DESCR(SAME, TYPE, 0, V8 "[(('t','n','x'),'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not a tuple"),
    DESCR(SAME, TYPE, 0, V8 "[(('t',5),'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not a tuple"),
    DESCR(SAME, TYPE, 0, V8 "[((None,'n'),'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not a tuple"),
    DESCR(SAME, TYPE, 0, V8 "[(['t','n'],'<f8')]",
          "descr[0]: a name must be a str or a tuple of 2 str, not a list"),
    DESCR(SAME, DESCR, 0, V8 "[('','<x4')]",
          "descr[0]: typestr '<x4' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    DESCR(SAME, DESCR, 0, V8 "[('a','<i4',(9223372036854775808,))]",
          "descr[0]: extent 0 of the repeat exceeds int64"),
    DESCR(SAME, TYPE, 0, V8 "[('a',8)]",
          "descr[0]: a type must be a typestr or a list, not an int"),
    DESCR(SAME, TYPE, 0, V8 "[('a',None)]",
          "descr[0]: a type must be a typestr or a list, not None"),
    DESCR(FORGIVEN, TYPE, 0, V8 "[('a',b'<f8')]",
          "descr[0]: a type must be a typestr or a list, not bytes"),
    DESCR(FORGIVEN, DESCR, 0, V8 "[('a','f8')]",
          "descr[0]: typestr 'f8' is not valid at 0: the byte order must be < > or |"),
    DESCR(FORGIVEN, DESCR, 1, V8 "[('a','<i4'),('b','=i4')]",
          "descr[1]: typestr '=i4' is not valid at 0: the byte order must be < > or |"),
    DESCR(SAME, DESCR, 0, V8 "[('a','|O8')]",
          "descr[0]: typestr '|O8' is not valid at 1: Python objects cannot live in device "
          "memory"),
    DESCR(SAME, DESCR, 0, V8 "[('a','<f9')]",
          "descr[0]: typestr '<f9' is not valid at 2: the kind has no such size"),
    DESCR(REFUSED, DESCR, 1, V8 "[('a','<i4'),('b','')]",
          "descr[1]: typestr '' is not valid at 0: the byte order must be < > or |"),
    DESCR(SAME, DESCR, 0, V8 "[('a','|t8'),('b','|V7')]",
          "descr[0]: a record cannot contain a bit field"),
    DESCR(FORGIVEN, TYPE, 0, V8 "[('a',(('b','<f8'),))]",
          "descr[0]: a type must be a typestr or a list, not a tuple"),
    DESCR(FORGIVEN, TYPE, 0, V8 "[('a','<i4',2)]",
          "descr[0]: a repeat must be a tuple, not an int"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<i4',None)]", "descr[0]: a repeat must be a tuple, not None"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<i4',[2])]", "descr[0]: a repeat must be a tuple, not a list"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<i4','2')]", "descr[0]: a repeat must be a tuple, not a str"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<i4',True)]", "descr[0]: a repeat must be a tuple, not a bool"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<i4',(2.0,))]",
          "descr[0]: an extent of a repeat must be an int, not a float"),
    DESCR(SAME, TYPE, 0, V8 "[('a','<i4',(True,2))]",
          "descr[0]: an extent of a repeat must be an int, not a bool"),
    DESCR(FORGIVEN, TYPE, 0, V8 "[('a','<i4',(np(2),))]",
          "descr[0]: an extent of a repeat must be an int, not an object with __index__"),
    DESCR(SAME, DESCR, 0, V8 "[('a','<i4',(2,-1))]",
          "descr[0]: extent 1 of the repeat is negative: -1"),
    DESCR(SAME, DESCR, 0, V8 "[('a','<i4',(18446744073709551616,))]",
          "descr[0]: extent 0 of the repeat exceeds int64"),
    DESCR(SAME, DESCR, 0, V8 "[('a','<i4',(" ONES_8 "2))]",
          "descr[0]: a repeat of 9 dimensions, the limit is 8"),
    DESCR(SAME, DESCR, 0, V8 "[('a','<i4',(1099511627776,1099511627776))]",
          "descr[0]: ends beyond 2147483647 bytes, the limit of an itemsize"),
    DESCR(SAME, DESCR, -1, V8 "[('a','<i4',(0,4611686018427387904,8))]",
          "descr adds up to 0 bytes, but typestr has 8"),
    DESCR(SAME, DESCR, 0, V8 "[('a',[('b','<i4',(4294967296,))],(4294967296,))]",
          "descr[0]: ends beyond 2147483647 bytes, the limit of an itemsize"),
    DESCR(SAME, DESCR, 0, V8 "[('a','|u1',(9223372036854775807,)),('b','|u1')]",
          "descr[0]: ends beyond 2147483647 bytes, the limit of an itemsize"),
    DESCR(SAME, DESCR, 0, V8 "[('a','|u1',(2147483648,)),('b','|u1')]",
          "descr[0]: ends beyond 2147483647 bytes, the limit of an itemsize"),
    DESCR(SAME, DESCR, 1, V8 "[('a','|V2147483647'),('b','|u1')]",
          "descr[1]: ends beyond 2147483647 bytes, the limit of an itemsize"),
    DESCR(SAME, DESCR, 1, V8 "[('a','<i4'),('a','<i4')]", "descr[1]: the name 'a' occurs twice"),
    DESCR(SAME, DESCR, 2, V8 "[('a','<i2'),('','|V4'),(('x','a'),'<i2')]",
          "descr[2]: the name 'a' occurs twice"),
    DESCR(SAME, DESCR, 0, V8 "[('r',[('p','<i4'),('p','<i4')])]",
          "descr[0]: the name 'p' occurs twice"),
    DESCR(SAME, DESCR, 0, V8 "[('a',[])]", "descr[0]: a list without fields"),
    DESCR(SAME, DESCR, -1, V8 "[('a','<i4')]", "descr adds up to 4 bytes, but typestr has 8"),
    DESCR(SAME, DESCR, -1, V8 "[('a','<i4'),('b','<f8')]",
          "descr adds up to 12 bytes, but typestr has 8"),
    DESCR(SAME, DESCR, -1, V8 "[('a','<i4',(0,))]", "descr adds up to 0 bytes, but typestr has 8"),
    DESCR(SAME, DESCR, 0, "shape=(8,); typestr='|t1'; descr=[('','|t1')]",
          "descr[0]: a record cannot contain a bit field"),
    DESCR(SAME, DESCR, 0, "typestr='|V4'; descr=" NEST_32 "[('a','<i4')]" TSEN_32,
          "descr[0]: nested deeper than 32 lists"),
};

static const row mask_rows[] = {
    MASK(SAME, TYPE, -1, "mask=True",
         "mask must be None or an object with the interface, not a bool"),
    MASK(SAME, TYPE, -1, "mask=5", "mask must be None or an object with the interface, not an int"),
    MASK(SAME, TYPE, -1, "mask='m'",
         "mask must be None or an object with the interface, not a str"),
    MASK(SAME, TYPE, -1, "mask=(True,)",
         "mask must be None or an object with the interface, not a tuple"),
    MASK(SAME, TYPE, -1, "mask={}",
         "mask must be None or an object with the interface, not a dict"),
    MASK(SAME, TYPE, -1, "mask=obj",
         "mask must be None or an object with the interface, not an object"),
    MASK(SAME, TYPE, -1, "mask=?",
         "mask must be None or an object with the interface, not a value of unknown kind"),
    MASK(SAME, MASK, 0, "mask={shape=(4,); " GOOD_MASK "}",
         "mask: shape[0] = 4 does not broadcast to the array's 3"),
    MASK(SAME, MASK, 0, "mask={shape=(3,1); " GOOD_MASK "}",
         "mask: shape[0] = 3 does not broadcast to the array's 2"),
    MASK(SAME, MASK, -1, "mask={shape=(1,2,3); " GOOD_MASK "}",
         "mask has 3 dimensions, the array has 2"),
    MASK(SAME, MASK, 0, "shape=(3,); mask={shape=(0,); " GOOD_MASK "}",
         "mask: shape[0] = 0 does not broadcast to the array's 3"),
    MASK(SAME, MISSING, -1, "mask={" GOOD_MASK "}", "mask: shape is missing"),
    MASK(SAME, SHAPE, 1, "mask={shape=(3,-1); " GOOD_MASK "}", "mask: shape[1] = -1 is negative"),
    MASK(SAME, TYPESTR, 2, "mask={shape=(3,); typestr='|b2'; data=(8192,True); version=3}",
         "mask: typestr '|b2' is not valid at 2: the kind has no such size"),
    MASK(SAME, STREAM, -1, "mask={shape=(3,); " GOOD_MASK "; stream=0}",
         "mask: stream = 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one, "
         "None is no pending work"),
    MASK(FORGIVEN, TYPE, -1, "mask={shape=[3]; " GOOD_MASK "}",
         "mask: shape must be a tuple, not a list"),
    MASK(FORGIVEN, MISSING, -1, "mask={shape=(3,); typestr='|b1'; data=(8192,0)}",
         "mask: version is missing"),
    MASK(SAME, MASK, -1, "mask={shape=(3,); " GOOD_MASK "; mask={shape=(3,); " GOOD_MASK "}}",
         "mask has a mask itself"),
    MASK(SAME, MASK, -1, "mask={shape=(3,); " GOOD_MASK "; mask=True}", "mask has a mask itself"),
    MASK(SAME, DESCR, -1, "mask={shape=(3,); " GOOD_MASK "; descr=[('a','|b1'),('b','|b1')]}",
         "mask: descr adds up to 2 bytes, but typestr has 1"),
};

/* The first entry in the order of CAI_ENTRY_LIST is the one that is reported; then what entries
 * say together, then the mask. */
static const row order_rows[] = {
    SHAPE(SAME, TYPE, -1, "shape=5; typestr='x'; data=5; version=None",
          "shape must be a tuple, not an int"),
    DESCR(SAME, TYPE, -1, "shape=(-1,3); descr=5", "descr must be a list, not an int"),
    SHAPE(SAME, SHAPE, 0, "shape=(-1,3); mask=True", "shape[0] = -1 is negative"),
    STREAM(SAME, TYPE, -1, "data=(0,False); stream='7'", "stream must be an int, not a str"),
    DATA(SAME, DATA, 0, "data=(0,False); mask=True",
         "data[0] = 0 (NULL) but the array is not empty"),
    TYPESTR(SAME, TYPESTR, 1, "typestr='<x4'; data=5; version=None; strides=5",
            "typestr '<x4' is not valid at 1: the kind must be one of t b i u f c m M S U V"),
    DATA(SAME, TYPE, -1, "data=5; version=None; strides=5; stream=0; descr=5",
         "data must be a tuple (pointer, read-only), not an int"),
    VERSION(SAME, TYPE, -1, "version=None; strides=5; stream=0; descr=5",
            "version must be an int, not None"),
    STRIDES(SAME, TYPE, -1, "strides=5; stream=0; descr=5; mask=True",
            "strides must be None or a tuple, not an int"),
    STREAM(SAME, STREAM, -1, "stream=0; descr=5; mask=True",
           "stream = 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one, None "
           "is no pending work"),
    DESCR(SAME, TYPE, -1, "descr=5; mask=True", "descr must be a list, not an int"),
};

/* ------------------------------------------------------------------ runner */

static cai_array out;
static cai_array mask_storage;
static cai_field field_storage[16];

static cai_import_options storage_options(uint32_t flags)
{
    cai_import_options options;
    options.flags = flags;
    options.mask = &mask_storage;
    options.fields = field_storage;
    options.field_capacity = 16;
    help_fill(&out, sizeof out);
    help_fill(&mask_storage, sizeof mask_storage);
    help_fill(field_storage, sizeof field_storage);
    return options;
}

static void check_untouched(void)
{
    CHECK(help_filled(&out, sizeof out));
    CHECK(help_filled(&mask_storage, sizeof mask_storage));
    CHECK(help_filled(field_storage, sizeof field_storage));
}

static int seen[CAI_STATUS_COUNT]; /* statuses that a call returned */

static void check_error(const cai_error *err, int32_t status, int32_t entry, int32_t index,
                        const char *message)
{
    if (!CHECK_INT(err->code, status)) return;
    seen[status] = 1;
    CHECK_INT(err->native, 0);
    CHECK_INT(err->entry, entry);
    CHECK_INT(err->index, index);
    CHECK_STR(err->message, message);
}

static void check_strict(const row *r)
{
    char message[400];
    cai_error err;
    cai_import_options options = storage_options(0);
    cai_interface *in = help_dict(r->text);
    help_fill(&err, sizeof err);
    strcpy(message, help_order(r->message));
    if (r->lenient == FORGIVEN || r->lenient == OTHER) {
        strcat(message, " (accepted by CAI_LENIENT)");
    }
    CHECK_INT(cai_import(in, &options, &out, &err), r->status);
    check_error(&err, r->status, r->entry, r->index, message);
    check_untouched();
    CHECK_INT(cai_import(in, &options, &out, NULL), r->status);
    check_untouched();
}

static void check_lenient(const row *r)
{
    cai_error err;
    cai_import_options options = storage_options(CAI_LENIENT);
    cai_interface *in = help_dict(r->text);
    cai_status status;
    help_fill(&err, sizeof err);
    status = cai_import(in, &options, &out, &err);
    if (r->lenient == FORGIVEN) {
        CHECK_INT(status, CAI_OK);
        CHECK(help_filled(&err, sizeof err));
        return;
    }
    if (!CHECK(status != CAI_OK)) return;
    check_untouched();
    CHECK(strstr(err.message, "CAI_LENIENT") == NULL);
    if (r->lenient == SAME) check_error(&err, r->status, r->entry, r->index,
                                        help_order(r->message));
}

static void check_rows(const row *rows, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++) {
        help_reset();
        cai_test_note(rows[i].text);
        check_strict(&rows[i]);
        check_lenient(&rows[i]);
    }
    cai_test_note("");
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

static void check_import_rows(void)
{
    CHECK_ROWS(shape_rows);
    CHECK_ROWS(typestr_rows);
    CHECK_ROWS(data_rows);
    CHECK_ROWS(version_rows);
    CHECK_ROWS(strides_rows);
    CHECK_ROWS(stream_rows);
    CHECK_ROWS(descr_rows);
    CHECK_ROWS(mask_rows);
    CHECK_ROWS(order_rows);
}

/* ------------------------------------------------------------------ storage of the caller */

static void check_mask_without_storage(void)
{
    cai_error err;
    cai_import_options options = storage_options(0);
    cai_interface *in = help_dict("mask={shape=(3,); " GOOD_MASK "}");
    options.mask = NULL;
    CHECK_INT(cai_import(in, &options, &out, &err), CAI_ERR_MASK);
    check_error(&err, CAI_ERR_MASK, CAI_ENTRY_MASK, -1,
                "mask is present, but this consumer accepts none");
    check_untouched();
    CHECK_INT(cai_import(in, NULL, &out, &err), CAI_ERR_MASK);
    CHECK_INT(cai_import(in, NULL, &out, NULL), CAI_ERR_MASK);
    check_untouched();
}

static void check_field_capacity(void)
{
    cai_error err;
    cai_import_options options = storage_options(0);
    cai_interface *in = help_dict("typestr='|V8'; descr=[('a','<i4'),('b','<i2'),('','|V2')];"
                                  "mask={shape=(3,); " GOOD_MASK "}");
    for (options.field_capacity = 0; options.field_capacity < 3; options.field_capacity++) {
        char message[80];
        sprintf(message, "descr needs 3 rows, but the storage has %d", (int)options.field_capacity);
        CHECK_INT(cai_import(in, &options, &out, &err), CAI_ERR_CAPACITY);
        check_error(&err, CAI_ERR_CAPACITY, CAI_ENTRY_DESCR, -1, message);
        check_untouched();
    }
    options.field_capacity = 3;
    CHECK_INT(cai_import(in, &options, &out, &err), CAI_OK);
}

/* A failure after the descr and the mask were judged good must not have stored them. */
static void check_late_failure(void)
{
    cai_import_options options = storage_options(0);
    cai_interface *in = help_dict("typestr='|V8'; descr=[('a','<i4'),('b','<i4')];"
                                  "mask={shape=(5,); " GOOD_MASK "}");
    CHECK_INT(cai_import(in, &options, &out, NULL), CAI_ERR_MASK);
    check_untouched();
    in = help_dict("typestr='|V8'; descr=[('a','<i4'),('b','<i4')]; data=(0,False);"
                   "mask={shape=(3,); " GOOD_MASK "}");
    CHECK_INT(cai_import(in, &options, &out, NULL), CAI_ERR_DATA);
    check_untouched();
}

/* ------------------------------------------------------------------ NULL and outputs */

static const int64_t shape23[2] = {2, 3};
static char memory[64];

static cai_array good_array(void)
{
    cai_array a;
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 2, shape23, NULL, memory, NULL), CAI_OK);
    return a;
}

/* Checks a call with err and with NULL: the status, the message, and that `out` is untouched. */
#define CHECK_FAILS(call, status, index, text) \
    CHECK_FAILS_AT(call, status, CAI_ENTRY_NONE, index, text)
#define CHECK_FAILS_AT(call, status, entry, index, text)                  \
    do {                                                                  \
        cai_error err_;                                                   \
        cai_error *err = &err_;                                           \
        cai_test_note(#call);                                             \
        help_fill(&out, sizeof out);                                      \
        CHECK_INT(call, status);                                          \
        check_error(err, status, entry, index, help_order(text));         \
        err = NULL;                                                       \
        CHECK_INT(call, status);                                          \
        CHECK(help_filled(&out, sizeof out));                             \
        cai_test_note("");                                                \
    } while (0)

#define CHECK_NULL(call, text) CHECK_FAILS(call, CAI_ERR_ARGUMENT, -1, text)

static void check_null_arrays(void)
{
    cai_array a = good_array();
    const int32_t A = CAI_ERR_ARGUMENT;
    CHECK_NULL(cai_array_init(NULL, CAI_FLOAT32, 2, shape23, NULL, memory, err),
               "cai_array_init: out or dtype is NULL");
    CHECK_NULL(cai_array_init(&out, CAI_FLOAT32, 2, NULL, NULL, memory, err),
               "the argument shape is NULL");
    CHECK_FAILS_AT(cai_array_init(&out, CAI_FLOAT32, -1, shape23, NULL, memory, err), A,
                   CAI_ENTRY_SHAPE, -1, "ndim = -1 is not in 0..64");
    CHECK_NULL(cai_array_init(&out, 7, 2, shape23, NULL, memory, err),
               "code 0x7 is no dtype of a fixed size (for others: cai_dtype_parse)");
    CHECK_NULL(cai_array_init(&out, CAI_VOID, 2, shape23, NULL, memory, err),
               "code 0x5600 is no dtype of a fixed size (for others: cai_dtype_parse)");
    CHECK_NULL(cai_array_init_dtype(NULL, &a.dtype, 2, shape23, NULL, 64, err),
               "cai_array_init: out or dtype is NULL");
    CHECK_NULL(cai_array_init_dtype(&out, NULL, 2, shape23, NULL, 64, err),
               "cai_array_init: out or dtype is NULL");
    CHECK_NULL(cai_array_init_dtype(&out, &a.dtype, 2, NULL, NULL, 64, err),
               "the argument shape is NULL");
    CHECK_NULL(cai_array_check(NULL, err), "array is NULL");
    CHECK_NULL(cai_expect(NULL, "x", CAI_FLOAT32, 2, 0, err), "x: array is NULL");
    CHECK_NULL(cai_expect_same_shape(NULL, "x", &a, "y", err), "x: array is NULL");
    CHECK_NULL(cai_expect_same_shape(&a, "x", NULL, "y", err), "y: array is NULL");
    CHECK_NULL(cai_dtype_of(CAI_FLOAT32, NULL, err), "cai_dtype_of: out is NULL");
    CHECK_NULL(cai_dtype_parse(NULL, 3, 0, &a.dtype, err), "cai_dtype_parse: typestr or out is NULL");
    CHECK_NULL(cai_dtype_parse("<f4", 3, 0, NULL, err), "cai_dtype_parse: typestr or out is NULL");
    CHECK_NULL(cai_dtype_parse("<f4", -1, 0, &a.dtype, err),
               "cai_dtype_parse: length = -1 is not in 0..2147483647");
    CHECK_NULL(cai_import(NULL, NULL, &out, err), "cai_import: in or out is NULL");
    CHECK_NULL(cai_import(help_dict(""), NULL, NULL, err), "cai_import: in or out is NULL");
}

static void check_null_views(void)
{
    cai_array a = good_array();
    CHECK_NULL(cai_view_values(NULL, &out, err), "array is NULL");
    CHECK_NULL(cai_view_values(&a, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_permute(NULL, NULL, &out, err), "array is NULL");
    CHECK_NULL(cai_view_permute(&a, NULL, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_slice(NULL, 0, 0, 1, 1, &out, err), "array is NULL");
    CHECK_NULL(cai_view_slice(&a, 0, 0, 1, 1, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_index(NULL, 0, 0, &out, err), "array is NULL");
    CHECK_NULL(cai_view_index(&a, 0, 0, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_expand(NULL, 0, &out, err), "array is NULL");
    CHECK_NULL(cai_view_expand(&a, 0, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_broadcast(NULL, 2, shape23, &out, err), "array is NULL");
    CHECK_NULL(cai_view_broadcast(&a, 2, NULL, &out, err), "the argument shape is NULL");
    CHECK_NULL(cai_view_broadcast(&a, 2, shape23, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_reshape(NULL, 2, shape23, &out, err), "array is NULL");
    CHECK_NULL(cai_view_reshape(&a, 2, NULL, &out, err), "the argument shape is NULL");
    CHECK_NULL(cai_view_reshape(&a, 2, shape23, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_reinterpret(NULL, &a.dtype, &out, err), "array is NULL");
    CHECK_NULL(cai_view_reinterpret(&a, NULL, &out, err), "cai_view_reinterpret: dtype is NULL");
    CHECK_NULL(cai_view_reinterpret(&a, &a.dtype, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_coalesce(NULL, &out, err), "array is NULL");
    CHECK_NULL(cai_view_coalesce(&a, NULL, err), "the argument out is NULL");
    CHECK_NULL(cai_view_field(NULL, 0, &out, err), "array is NULL");
    CHECK_NULL(cai_view_field(&a, 0, NULL, err), "the argument out is NULL");
}

static void check_null_export(void)
{
    cai_array a = good_array();
    cai_interface in;
    cai_export_storage storage;
    const int32_t A = CAI_ERR_ARGUMENT;
    memset(&storage, 0, sizeof storage);
    help_fill(&in, sizeof in);
    CHECK_NULL(cai_export(NULL, 3, &storage, &in, err), "array is NULL");
    CHECK_NULL(cai_export(&a, 3, NULL, &in, err), "cai_export: storage or out is NULL");
    CHECK_NULL(cai_export(&a, 3, &storage, NULL, err), "cai_export: storage or out is NULL");
    CHECK_FAILS_AT(cai_export(&a, 4, &storage, &in, err), A, CAI_ENTRY_VERSION, -1,
                   "version = 4 is not in 0..3");
    CHECK_FAILS_AT(cai_export(&a, -1, &storage, &in, err), A, CAI_ENTRY_VERSION, -1,
                   "version = -1 is not in 0..3");
    CHECK(help_filled(&in, sizeof in));
}

static void check_null_fields(void)
{
    const cai_token *descr = help_run("[('a','<i4')]");
    cai_dtype dtype = help_dtype("|V4");
    int64_t count = 77;
    CHECK_NULL(cai_fields_compile(descr, NULL, 0, NULL, 0, &count, err),
               "cai_fields_compile: dtype or count is NULL");
    CHECK_NULL(cai_fields_compile(descr, &dtype, 0, NULL, 0, NULL, err),
               "cai_fields_compile: dtype or count is NULL");
    CHECK_FAILS_AT(cai_fields_compile(descr, &dtype, 0, field_storage, -1, &count, err),
                   CAI_ERR_CAPACITY, CAI_ENTRY_DESCR, -1,
                   "descr needs 1 rows, but the storage has -1");
    CHECK_INT(count, 77);
    CHECK_INT(cai_fields_compile(NULL, &dtype, 0, NULL, 0, &count, NULL), CAI_OK); /* absent */
    CHECK_INT(count, 0);
}

static void check_null_streams(void)
{
    cai_array a = good_array();
    cai_kernel_view view;
    const cai_token *one = help_run("1");
    const cai_token *pair = help_run("(0,7)");
    int32_t sync = 55;
    uint64_t stream = 66;
    help_fill(&view, sizeof view);
    CHECK_NULL(cai_kernel_view_of(NULL, &view, err), "array is NULL");
    CHECK_NULL(cai_kernel_view_of(&a, NULL, err), "cai_kernel_view_of: out is NULL");
    CHECK_NULL(cai_decode_stream_interface(one, 3, NULL, &stream, err),
               "cai_decode_stream_interface: sync or stream is NULL");
    CHECK_NULL(cai_decode_stream_interface(one, 3, &sync, NULL, err),
               "cai_decode_stream_interface: sync or stream is NULL");
    CHECK_NULL(cai_decode_stream_protocol(NULL, &stream, err),
               "cai_decode_stream_protocol: value or stream is NULL");
    CHECK_NULL(cai_decode_stream_protocol(pair, NULL, err),
               "cai_decode_stream_protocol: value or stream is NULL");
    CHECK_NULL(cai_decode_stream_dlpack(one, NULL, &stream, err),
               "cai_decode_stream_dlpack: sync or stream is NULL");
    CHECK_NULL(cai_decode_stream_dlpack(one, &sync, NULL, err),
               "cai_decode_stream_dlpack: sync or stream is NULL");
    CHECK(help_filled(&view, sizeof view));
    CHECK_INT(sync, 55);
    CHECK_UINT(stream, 66);
}

static void check_null_harmless(void)
{
    char text[8];
    CHECK_INT(cai_overlap(NULL, NULL), CAI_OVERLAP_UNDECIDED);
    CHECK_INT(cai_array_text(NULL, text, 8), 4);
    CHECK_STR(text, "NULL");
    cai_array_release(NULL);
}

/* ------------------------------------------------------------------ one call for each status */

static void check_shape_errors(void)
{
    int64_t bad[2] = {2, -1}, huge[2] = {(int64_t)1 << 62, 8}, wide[1] = {3};
    int64_t span[1] = {INT64_MAX - 1}, ones[65];
    int32_t i;
    for (i = 0; i < 65; i++) ones[i] = 1;
    CHECK_FAILS_AT(cai_array_init(&out, CAI_FLOAT32, 2, bad, NULL, memory, err), CAI_ERR_SHAPE,
                   CAI_ENTRY_SHAPE, 1, "shape[1] = -1 is negative");
    CHECK_FAILS_AT(cai_array_init(&out, CAI_FLOAT32, 2, huge, NULL, memory, err), CAI_ERR_SHAPE,
                   CAI_ENTRY_SHAPE, 0,
                   "shape[0] = 4611686018427387904 makes the array larger than "
                   "9223372036854775807 bytes");
    CHECK_FAILS_AT(cai_array_init(&out, CAI_FLOAT32, 65, ones, NULL, memory, err),
                   CAI_ERR_ARGUMENT, CAI_ENTRY_SHAPE, -1, "ndim = 65 is not in 0..64");
    CHECK_FAILS_AT(cai_array_init(&out, CAI_FLOAT32, 1, wide, span, memory, err),
                   CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, 0,
                   "strides[0] = 9223372036854775806 over 3 elements reaches beyond 64 bits");
    CHECK_FAILS_AT(cai_array_init(&out, CAI_FLOAT32, 1, wide, NULL, NULL, err), CAI_ERR_DATA,
                   CAI_ENTRY_DATA, 0, "data[0] = 0 (NULL) but the array is not empty");
}

static void check_other_errors(void)
{
    cai_array a = good_array(), b = good_array();
    CHECK_FAILS(cai_expect(&a, "x", CAI_FLOAT64, 2, 0, err), CAI_ERR_EXPECT, -1,
                "x: expected float64, 2-D; got float32, 2-D");
    CHECK_FAILS(cai_view_index(&a, 1, 3, &out, err), CAI_ERR_VIEW, 1,
                "axis 1: index 3 is outside of an extent of 3");
    b.mask = &a;
    CHECK_FAILS_AT(cai_view_index(&b, 1, 0, &out, err), CAI_ERR_MASK, CAI_ENTRY_MASK, -1,
                   "the array has a mask: view cai_view_values and the mask separately");
    b.abi = 1;
    b.abi = CAI_ABI;
    b.ndim = 65;
    CHECK_FAILS(cai_array_check(&b, err), CAI_ERR_ABI, -1, "ndim = 65 is not in 0..64");
    b.ndim = 2;
    b.field_count = -3;
    CHECK_FAILS(cai_array_check(&b, err), CAI_ERR_ABI, -1, "field_count = -3 is not in 0..4096");
    b.field_count = 0;
    b.struct_size = 9;
    CHECK_FAILS(cai_array_check(&b, err), CAI_ERR_ABI, -1,
                sizeof(void *) == 8 ? "struct_size = 9 is less than 1216, that of this header"
                                    : "struct_size = 9 is less than 1200, that of this header");
    b.abi = 1;
    CHECK_FAILS(cai_array_check(&b, err), CAI_ERR_ABI, -1,
                "abi = 0x1 is not 0x43414931, that of this header");
}

static void check_view_errors(void)
{
    cai_array a = good_array();
    const int64_t negative[2] = {2, -5}, four[2] = {2, 4}, unknown[2] = {-1, -1};
    const int32_t twice[2] = {1, 1};
    cai_dtype wide = help_dtype("@f8");
    CHECK_FAILS_AT(cai_view_broadcast(&a, 65, shape23, &out, err), CAI_ERR_ARGUMENT,
                   CAI_ENTRY_SHAPE, -1, "ndim = 65 is not in 0..64");
    CHECK_FAILS_AT(cai_view_broadcast(&a, 2, four, &out, err), CAI_ERR_VIEW, CAI_ENTRY_SHAPE, 1,
                   "shape[1] = 3 does not broadcast to 4");
    CHECK_FAILS_AT(cai_view_reshape(&a, 2, negative, &out, err), CAI_ERR_SHAPE, CAI_ENTRY_SHAPE,
                   1, "shape[1] = -5 is negative");
    CHECK_FAILS_AT(cai_view_reshape(&a, 2, unknown, &out, err), CAI_ERR_SHAPE, CAI_ENTRY_SHAPE,
                   1, "shape[1] = -1 is a second unknown extent");
    CHECK_FAILS_AT(cai_view_reshape(&a, 2, four, &out, err), CAI_ERR_VIEW, CAI_ENTRY_SHAPE, -1,
                   "6 elements do not fill the new shape of 2 dimensions");
    CHECK_FAILS(cai_view_permute(&a, twice, &out, err), CAI_ERR_VIEW, 1,
                "axes[1] = 1 occurs twice");
    CHECK_FAILS(cai_view_slice(&a, 1, 0, 2, 3, &out, err), CAI_ERR_VIEW, 1,
                "axis 1 of extent 3 has no slice with start = 0, count = 2, step = 3");
    CHECK_FAILS(cai_view_slice(&a, 1, 0, -2, 3, &out, err), CAI_ERR_VIEW, 1,
                "axis 1 of extent 3 has no slice with start = 0, count = -2, step = 3");
    CHECK_FAILS(cai_view_index(&a, 7, 0, &out, err), CAI_ERR_VIEW, 7,
                "axis 7 does not exist: there are 2 axes");
    CHECK_FAILS_AT(cai_view_reinterpret(&a, &wide, &out, err), CAI_ERR_VIEW, CAI_ENTRY_NONE,
                   1, "a last axis of 3 elements is not a whole number of items of 8 bytes");
    CHECK_FAILS_AT(cai_view_field(&a, 0, &out, err), CAI_ERR_VIEW, CAI_ENTRY_DESCR, -1,
                   "row 0 does not exist: there are 0 rows");
}

/* A shape of several arrays: the array that does not fit is named, and what it was given stays. */
static void check_broadcast_errors(void)
{
    const int64_t four[2] = {1, 4}, deep[3] = {3, 1, 1}, many[2] = {(int64_t)1 << 62, 1}, none[3] = {3, 1, 0};
    int64_t shape[CAI_MAX_NDIM] = {0};
    int32_t ndim = 0;
    cai_array a = good_array(), b = good_array(), huge;
    CHECK_INT(cai_broadcast_shape(&a, "x", &ndim, shape, NULL), CAI_OK);
    CHECK_INT(cai_array_init(&b, CAI_FLOAT32, 2, four, NULL, memory, NULL), CAI_OK);
    CHECK_FAILS_AT(cai_broadcast_shape(&b, "y", &ndim, shape, err), CAI_ERR_EXPECT, CAI_ENTRY_SHAPE, 1,
                   "y: shape[1] = 4 does not broadcast with the 3 of the arrays before");
    CHECK_INT(cai_array_init(&b, CAI_FLOAT32, 1, four + 1, NULL, memory, NULL), CAI_OK);
    CHECK_FAILS_AT(cai_broadcast_shape(&b, "y", &ndim, shape, err), CAI_ERR_EXPECT, CAI_ENTRY_SHAPE, 0,
                   "y: shape[0] = 4 does not broadcast with the 3 of the arrays before");
    CHECK_INT(cai_array_init(&b, CAI_FLOAT32, 3, deep, NULL, memory, NULL), CAI_OK);
    b.shape[0] = -7;
    CHECK_FAILS_AT(cai_broadcast_shape(&b, "y", &ndim, shape, err), CAI_ERR_SHAPE,
                   CAI_ENTRY_SHAPE, 0, "y: shape[0] = -7 is negative");
    CHECK_INT(cai_array_init(&huge, CAI_INT8, 2, many, NULL, memory, NULL), CAI_OK);
    shape[0] = 1;
    CHECK_FAILS_AT(cai_broadcast_shape(&huge, "z", &ndim, shape, err), CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, 0,
                   "z: the result has more than 9223372036854775807 elements");
    CHECK_INT(ndim, 2);
    CHECK(shape[0] == 1 && shape[1] == 3 && shape[2] == 0);
    CHECK_NULL(cai_broadcast_shape(NULL, "x", &ndim, shape, err), "x: array is NULL");
    CHECK_NULL(cai_broadcast_shape(&a, NULL, &ndim, shape, err), "cai_broadcast_shape: name, ndim or shape is NULL");
    CHECK_NULL(cai_broadcast_shape(&a, "x", NULL, shape, err), "cai_broadcast_shape: name, ndim or shape is NULL");
    CHECK_NULL(cai_broadcast_shape(&a, "x", &ndim, NULL, err), "cai_broadcast_shape: name, ndim or shape is NULL");
    ndim = 65;
    CHECK_FAILS_AT(cai_broadcast_shape(&a, "x", &ndim, shape, err), CAI_ERR_ARGUMENT, CAI_ENTRY_SHAPE, -1,
                   "ndim = 65 is not in 0..64");
    ndim = -1;
    CHECK_FAILS_AT(cai_broadcast_shape(&a, "x", &ndim, shape, err), CAI_ERR_ARGUMENT, CAI_ENTRY_SHAPE, -1,
                   "ndim = -1 is not in 0..64");
    ndim = 0; /* an extent of 0 does not hide the size of the others, as in an array */
    CHECK_INT(cai_array_init(&b, CAI_FLOAT32, 3, none, NULL, memory, NULL), CAI_OK);
    CHECK_INT(cai_broadcast_shape(&b, "y", &ndim, shape, NULL), CAI_OK);
    CHECK_FAILS_AT(cai_broadcast_shape(&huge, "z", &ndim, shape, err), CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, 0,
                   "z: the result has more than 9223372036854775807 elements");
}

/* cai_error_name puts the name of an argument before the error of any function of one array. */
static void check_names(void)
{
    const int64_t four[2] = {2, 4};
    char name[300];
    cai_array a = good_array(), b = good_array();
    cai_kernel_view view;
    cai_error long_name;
    CHECK_FAILS_AT(cai_error_name(cai_view_broadcast(&a, 2, four, &out, err), "x", err), CAI_ERR_VIEW,
                   CAI_ENTRY_SHAPE, 1, "x: shape[1] = 3 does not broadcast to 4");
    CHECK_FAILS(cai_error_name(cai_view_index(&a, 3, 0, &out, err), "x", err), CAI_ERR_VIEW, 3,
                "x: axis 3 does not exist: there are 2 axes");
    CHECK_FAILS(cai_error_name(cai_view_slice(&a, 1, 0, 2, 3, &out, err), NULL, err), CAI_ERR_VIEW, 1,
                "axis 1 of extent 3 has no slice with start = 0, count = 2, step = 3");
    b.mask = &a;
    CHECK_FAILS_AT(cai_error_name(cai_view_permute(&b, NULL, &out, err), "fields[2]", err), CAI_ERR_MASK,
                   CAI_ENTRY_MASK, -1,
                   "fields[2]: the array has a mask: view cai_view_values and the mask separately");
    CHECK_NULL(cai_error_name(cai_kernel_view_of(NULL, &view, err), "y", err), "y: array is NULL");
    help_fill(&long_name, sizeof long_name);
    CHECK_INT(cai_error_name(CAI_OK, "x", &long_name), CAI_OK);
    CHECK(help_filled(&long_name, sizeof long_name));
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK_INT(cai_view_index(&a, 3, 0, &out, &long_name), CAI_ERR_VIEW);
    CHECK_INT(cai_error_name(CAI_ERR_VIEW, name, &long_name), CAI_ERR_VIEW);
    CHECK_UINT(strlen(long_name.message), sizeof long_name.message - 1);
    CHECK_STR(long_name.message + sizeof long_name.message - 5, "n...");
}

static void check_kernel_errors(void)
{
    int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    cai_dtype bit = help_dtype("|t1");
    cai_kernel_view view;
    cai_array a;
    help_fill(&view, sizeof view);
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 9, ones, NULL, memory, NULL), CAI_OK);
    CHECK_FAILS_AT(cai_kernel_view_of(&a, &view, err), CAI_ERR_VIEW, CAI_ENTRY_SHAPE, -1,
                   "the array has 9 dimensions, a kernel view at most 8: cai_view_coalesce may merge "
                   "some");
    CHECK_INT(cai_array_init_dtype(&a, &bit, 1, ones, NULL, 64, NULL), CAI_OK);
    CHECK_FAILS_AT(cai_kernel_view_of(&a, &view, err), CAI_ERR_VIEW, CAI_ENTRY_TYPESTR, -1,
                   "a bit field has no views: bits have no addresses");
    CHECK(help_filled(&view, sizeof view));
}

static void check_export_errors(void)
{
    cai_array a = good_array();
    cai_token tokens[16];
    char text[64];
    cai_interface in;
    cai_export_storage storage;
    storage.tokens = tokens;
    storage.token_capacity = 1;
    storage.text = text;
    storage.text_capacity = 64;
    storage.mask = NULL;
    help_fill(&in, sizeof in);
    CHECK_FAILS(cai_export(&a, 2, &storage, &in, err), CAI_ERR_CAPACITY, -1,
                "storage of 1 tokens and 64 bytes of text is too small");
    storage.token_capacity = 16;
    CHECK_FAILS_AT(cai_export(&a, 3, &storage, &in, err), CAI_ERR_EXPORT, CAI_ENTRY_STREAM, -1,
                   "stream: work may be pending, but version 3 without a stream means none");
    CHECK(help_filled(&in, sizeof in));
}

/* ------------------------------------------------------------------ names and numbers */

typedef struct known {
    const char *name;
    int32_t number;
} known;

/* Numbers are part of the ABI: lines may be added at the end, none may change. */
static const known statuses[] = {
    {"CAI_OK", 0},           {"CAI_ERR_ARGUMENT", 1},  {"CAI_ERR_INTERFACE", 2},
    {"CAI_ERR_MISSING", 3},  {"CAI_ERR_TYPE", 4},      {"CAI_ERR_SHAPE", 5},
    {"CAI_ERR_TYPESTR", 6},  {"CAI_ERR_DATA", 7},      {"CAI_ERR_VERSION", 8},
    {"CAI_ERR_STRIDES", 9},  {"CAI_ERR_STREAM", 10},   {"CAI_ERR_DESCR", 11},
    {"CAI_ERR_MASK", 12},    {"CAI_ERR_CAPACITY", 13}, {"CAI_ERR_EXPORT", 14},
    {"CAI_ERR_EXPECT", 15},  {"CAI_ERR_VIEW", 16},     {"CAI_ERR_ABI", 17},
    {"CAI_ERR_CUDA", 18},    {"CAI_ERR_UNAVAILABLE", 19}, {"CAI_ERR_THREAD", 20},
    {"CAI_ERR_CAPTURE", 21}, {"CAI_ERR_MEMORY", 22},   {"CAI_ERR_STALE", 23},
    {"CAI_ERR_PENDING", 24}, {"CAI_ERR_OUT_OF_MEMORY", 25}, {"CAI_ERR_PLACEMENT", 26},
    {"CAI_ERR_CONFLICT", 27}, {"CAI_ERR_NO_BUFFER", 28}, {"CAI_ERR_MPI", 29},
};

static const known entries[] = {
    {"", 0},        {"shape", 1},  {"typestr", 2}, {"data", 3}, {"version", 4},
    {"strides", 5}, {"stream", 6}, {"descr", 7},   {"mask", 8},
};

static void check_numbers(void)
{
#define NUMBER_OF(name, number, exception, text) {#name, name},
    const known listed[] = {{"CAI_OK", CAI_OK}, CAI_STATUS_LIST(NUMBER_OF)};
#undef NUMBER_OF
    const int32_t count = (int32_t)(sizeof statuses / sizeof statuses[0]);
    int32_t i, k;
    CHECK(CAI_STATUS_COUNT >= count);
    CHECK_INT(sizeof listed / sizeof listed[0], CAI_STATUS_COUNT);
    for (i = 0; i < count; i++) {
        CHECK_INT(listed[i].number, statuses[i].number);
        CHECK_STR(listed[i].name, statuses[i].name);
        CHECK_STR(cai_status_name(i), statuses[i].name);
    }
    for (i = 0; i < CAI_STATUS_COUNT; i++) {
        CHECK_INT(listed[i].number, i);
        for (k = 0; k < i; k++) CHECK(strcmp(cai_status_name(i), cai_status_name(k)) != 0);
    }
}

static void check_unknown_numbers(void)
{
    CHECK_STR(cai_status_name(-1), "CAI_ERR_UNKNOWN");
    CHECK_STR(cai_status_name(CAI_STATUS_COUNT), "CAI_ERR_UNKNOWN");
    CHECK_STR(cai_status_name(INT32_MAX), "CAI_ERR_UNKNOWN");
    CHECK_STR(cai_status_name(INT32_MIN), "CAI_ERR_UNKNOWN");
}

static void check_entries(void)
{
    int32_t i;
    CHECK_INT(CAI_ENTRY_COUNT, sizeof entries / sizeof entries[0]);
    for (i = 0; i < CAI_ENTRY_COUNT; i++) CHECK_STR(cai_entry_name(i), entries[i].name);
    CHECK_STR(cai_entry_name(-1), "");
    CHECK_STR(cai_entry_name(CAI_ENTRY_COUNT), "");
    CHECK_STR(cai_entry_name(INT32_MIN), "");
}

static cai_status try_twice(cai_status first, int32_t *reached)
{
    CAI_TRY(first);
    *reached = 1;
    return CAI_OK;
}

static void check_try(void)
{
    int32_t reached = 0;
    CHECK_INT(try_twice(CAI_ERR_VIEW, &reached), CAI_ERR_VIEW);
    CHECK_INT(reached, 0);
    CHECK_INT(try_twice(CAI_OK, &reached), CAI_OK);
    CHECK_INT(reached, 1);
    CHECK_INT(cai_version(), CAI_H_INCLUDED);
    CHECK_INT(cai_version(),
              10000 * CAI_VERSION_MAJOR + 100 * CAI_VERSION_MINOR + CAI_VERSION_PATCH);
    CHECK_INT(sizeof(cai_error), 260);
}

/* What is no error of a dictionary breaks none of its rules. */
static void check_rules(void)
{
    static const struct {
        const char *text;
        int32_t rule;
    } rows[] = {
        {"!version", 2}, {"shape=[2]", 3}, {"shape=(-1,)", 17}, {"typestr=4", 4}, {"typestr='f4'", 30},
        {"typestr='<m8[0s]'", 34}, {"typestr='<m8[q]'", 34}, {"typestr='|O'", 37}, {"typestr='<f5'", 32},
        {"typestr='|V2147483648'", 32}, {"typestr='<f04'", 30}, {"data=(1,False,2)", 5}, {"data=(1,2)", 6},
        {"data=(1,None)", 6}, {"version=-1", 8}, {"version='3'", 8}, {"strides=(4,)", 22},
        {"strides=[4]", 19}, {"strides=(4,'4')", 19}, {"stream=0", 71}, {"stream=-1", 74}, {"stream=-2", 74}, {"stream='1'", 74},
        {"stream=18446744073709551616", 74}, {"descr=()", 40}, {"descr=[('a',)]", 40}, {"descr=[]", 41},
        {"descr=[(1,'<f4')]", 44}, {"descr=[('a','<f2'),('a','<f2')]", 44}, {"descr=[('a',1)]", 43},
        {"descr=[('a','<f4',2)]", 43}, {"descr=[('a','|t4')]", 33}, {"descr=[('a','<f8')]", 41},
        {"descr=[('a','<f5')]", 32}, {"descr=[('a','|O')]", 37}, {"mask=5", 50},
        {"mask={shape=(5,); typestr='|b1'; data=(1,False); version=3}", 51}};
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cai_import_options options = storage_options(0);
        cai_error err;
        help_reset();
        cai_test_note(rows[i].text);
        memset(&err, 0x5a, sizeof err);
        CHECK(cai_import(help_dict(rows[i].text), &options, &out, &err) != CAI_OK);
        CHECK_INT(err.rule, rows[i].rule);
    }
    cai_test_note("");
}

/* The same of calls that judge no dictionary. */
static void check_rules_of_calls(void)
{
    static const int64_t extent = 8, negative = -1, far = INT64_MAX;
    static int64_t data;
    const cai_token minus = {CAI_TOKEN_INT, 0, (uint64_t)-2, NULL}, zero = {CAI_TOKEN_INT, 0, 0, NULL};
    cai_array bits, other, view;
    cai_dtype dtype;
    cai_token tokens[40];
    char text[100];
    cai_export_storage storage = {tokens, 40, text, (int64_t)sizeof text, NULL};
    cai_interface made;
    int32_t sync;
    uint64_t stream;
    size_t i;
    CHECK_INT(cai_dtype_parse("|t3", 3, 0, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&bits, &dtype, 1, &extent, NULL, 4096, NULL), CAI_OK);
    CHECK_INT(cai_array_init(&other, CAI_INT8, 1, &extent, NULL, &data, NULL), CAI_OK);
    for (i = 0; i < 2; i++) { /* without an error the status is the same */
        cai_error told, *at = i ? NULL : &told;
#define BROKEN(call, status, number)                                                                         \
    do {                                                                                                     \
        memset(&told, 0x5a, sizeof told);                                                                    \
        CHECK_INT(call, status);                                                                             \
        if (at) CHECK_INT(told.rule, number);                                                                \
    } while (0)
        BROKEN(cai_dtype_parse("|O8", 3, 0, &dtype, at), CAI_ERR_TYPESTR, 37);
        BROKEN(cai_array_init(&view, CAI_INT8, 65, &extent, NULL, &view, at), CAI_ERR_ARGUMENT, 29);
        BROKEN(cai_array_init(&view, CAI_INT8, 1, &negative, NULL, &view, at), CAI_ERR_SHAPE, 17);
        BROKEN(cai_array_init(&view, CAI_INT16, 1, &far, NULL, &view, at), CAI_ERR_SHAPE, 18);
        BROKEN(cai_array_init(&view, 77, 1, &extent, NULL, &view, at), CAI_ERR_ARGUMENT, 0);
        CHECK_INT(cai_dtype_parse("|t3", 3, 0, &dtype, NULL), CAI_OK);
        BROKEN(cai_array_init_dtype(&view, &dtype, 1, &extent, &extent, 4096, at), CAI_ERR_STRIDES, 33);
        BROKEN(cai_view_slice(&bits, 0, 0, 1, 1, &view, at), CAI_ERR_VIEW, 33);
        BROKEN(cai_decode_stream_interface(&zero, 3, &sync, &stream, at), CAI_ERR_STREAM, 71);
        BROKEN(cai_decode_stream_interface(&minus, 3, &sync, &stream, at), CAI_ERR_STREAM, 74);
        other.sync = CAI_SYNC_STREAM;
        BROKEN(cai_export(&other, 3, &storage, &made, at), CAI_ERR_EXPORT, 71);
        other.stream = 7;
        BROKEN(cai_export(&other, 2, &storage, &made, at), CAI_ERR_EXPORT, 60);
        other.sync = CAI_SYNC_UNKNOWN;
        BROKEN(cai_export(&other, 3, &storage, &made, at), CAI_ERR_EXPORT, 70);
#undef BROKEN
        other.stream = 0;
    }
}

/* What users say by it looks like what cai says. */
static void check_error_set(void)
{
    char wide[300];
    cai_error err, before;
    memset(&err, 0x5a, sizeof err);
    before = err;
    CHECK_INT(cai_error_set(CAI_OK, "x", "is right", &err), CAI_OK);
    CHECK_BYTES(&err, &before, sizeof err);
    CHECK_INT(cai_error_set(CAI_ERR_VIEW, "x", "is wrong", NULL), CAI_ERR_VIEW);
    CHECK_INT(cai_error_set(CAI_ERR_EXPECT, "x", "work may be pending", &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "x: work may be pending");
    CHECK_INT(err.code, CAI_ERR_EXPECT);
    CHECK_INT(err.native | err.entry | err.rule, 0);
    CHECK_INT(err.index, -1);
    CHECK_INT(cai_error_set(CAI_ERR_MEMORY, NULL, "100 %R17", &err), CAI_ERR_MEMORY);
    CHECK_STR(err.message, "100 %R17"); /* as it stands */
    CHECK_INT(cai_error_set(CAI_ERR_MEMORY, "x", NULL, &err), CAI_ERR_MEMORY);
    CHECK_STR(err.message, "x: CAI_ERR_MEMORY");
    memset(wide, 'w', sizeof wide);
    wide[sizeof wide - 1] = 0;
    CHECK_INT(cai_error_set(CAI_ERR_VIEW, "x", wide, &err), CAI_ERR_VIEW);
    CHECK_INT(strlen(err.message), sizeof err.message - 1);
    CHECK_STR(err.message + sizeof err.message - 5, "w...");
}

/* CAI_ERR_INTERFACE is for readers: what cai_import gets is a dictionary already. What follows CAI_ERR_ABI is
 * for the headers that build on this one. */
static void check_all_seen(void)
{
    int32_t i;
    for (i = 1; i <= CAI_ERR_ABI; i++) {
        cai_test_note(cai_status_name(i));
        CHECK(seen[i] || i == CAI_ERR_INTERFACE);
    }
}

static void run(void)
{
    check_numbers();
    check_unknown_numbers();
    check_entries();
    check_try();
    check_import_rows();
    help_reset();
    check_mask_without_storage();
    check_field_capacity();
    check_late_failure();
    check_null_arrays();
    check_null_views();
    check_null_export();
    check_null_fields();
    check_null_streams();
    check_null_harmless();
    check_shape_errors();
    check_other_errors();
    check_view_errors();
    check_names();
    check_broadcast_errors();
    check_kernel_errors();
    check_export_errors();
    check_rules();
    check_rules_of_calls();
    check_error_set();
    check_all_seen();
}

CAI_TEST_MAIN(run)
