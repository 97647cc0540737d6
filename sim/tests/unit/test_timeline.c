/* test_timeline.c - timelines: small programs against golden files, and what is drawn from them
 * SPDX-License-Identifier: MIT
 *
 *     test_timeline [FOLDER [IMAGES [--write]]]
 *
 * FOLDER has the golden files, IMAGES the pictures of some of the programs, for the documentation; --write
 * renews both. Without them all but the comparison with files. */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_timeline.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#include "sim/cai_timeline.c"
#endif
#include "cai_test.h"

#include <ctype.h>

enum { MOST = 1 << 16, PROGRAMS = 20 };

/* ------------------------------------------------------------------- programs */
static cai_sim *sim;
static uint64_t s1, s2, s3; /* non-blocking streams of device 0 */
static uint64_t m1, m2, m3; /* 1024 bytes each, in the memory of device 0 */
static uint64_t e1, e2;

static void reads_writes(uint64_t stream, const char *name, uint64_t in, uint64_t out)
{
    cai_sim_access access[2];
    int32_t count = 0;
    if (out) access[count++] = cai_sim_writes(out, 1024);
    if (in) access[count++] = cai_sim_reads(in, 1024);
    CHECK_INT(cai_sim_touch(sim, stream, name, access, count), 0);
}

static void wait_for(uint64_t event, uint64_t recorded, uint64_t waiting)
{
    CHECK_INT(cai_sim_event_record(sim, event, recorded), 0);
    CHECK_INT(cai_sim_stream_wait_event(sim, waiting, event), 0);
}

/* A producer fills m1 on s1, a consumer reads it on s2, the producer fills it again. */
static void exchange(int forth, int back)
{
    reads_writes(s1, "fill", 0, m1);
    if (forth) wait_for(e1, s1, s2);
    reads_writes(s2, "scale", m1, m2);
    if (back) wait_for(e1, s2, s1);
    reads_writes(s1, "fill again", 0, m1);
}

static void right(void)
{
    exchange(1, 1);
}

static void no_wait(void)
{
    exchange(0, 1);
}

static void no_back_edge(void)
{
    exchange(1, 0);
}

static void legacy(void)
{
    const uint64_t blocking = cai_sim_stream_create(sim, 0);
    reads_writes(blocking, "fill", 0, m1);
    reads_writes(1, "scale", m1, m2);
    reads_writes(blocking, "use", m2, m3);
    reads_writes(s1, "does not take part", m2, 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, 1), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, blocking), 0);
}

static void two_devices(void)
{
    uint64_t other, event;
    reads_writes(s1, "fill", 0, m1);
    CHECK_INT(cai_sim_event_record(sim, e1, s1), 0);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 1)), 0);
    other = cai_sim_stream_create(sim, 1);
    event = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_stream_wait_event(sim, other, e1), 0);
    reads_writes(other, "copy to device 1", m1, m2);
    CHECK_INT(cai_sim_event_record(sim, event, other), 0);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_sim_event_synchronize(sim, event), 0);
    reads_writes(s2, "use", m2, 0);
    CHECK_INT(cai_sim_stream_destroy(sim, other), 0);
    CHECK_INT(cai_sim_event_destroy(sim, event), 0);
}

/* The memory goes while a stream still reads it, and again in the order of a stream that waits for it. */
static void frees(void)
{
    const cai_cuda *cuda = cai_sim_cuda(sim);
    uint64_t pool = 0;
    CHECK_INT(cuda->memory_alloc_async(sim, &pool, 256, s1), 0);
    {
        const cai_sim_access part = cai_sim_writes(pool, 256);
        CHECK_INT(cai_sim_touch(sim, s2, "too early", &part, 1), 0);
    }
    CHECK_INT(cuda->memory_free_async(sim, pool, s1), 0);
    reads_writes(s2, "reads what goes", m3, 0);
    (void)cai_sim_run(sim);
    CHECK_INT(cai_sim_free(sim, m3), 0);
    m3 = 0;
}

/* The consumer may even come before the allocation; the race with the work on it says more. */
static void allocation(void)
{
    uint64_t pool = 0;
    CHECK_INT(cai_sim_cuda(sim)->memory_alloc_async(sim, &pool, 1024, s1), 0);
    reads_writes(s1, "fill", 0, pool);
    reads_writes(s2, "scale", pool, m1);
    CHECK_INT(cai_check_races(sim, NULL, 0), 2);
}

static void host(void)
{
    const cai_sim_access half = cai_sim_reads(m1, 512), rest = cai_sim_reads(m1 + 512, 512);
    reads_writes(s1, "fill", 0, m1);
    CHECK_INT(cai_sim_host_access(sim, "looks too early", &half, 1), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, s1), 0);
    CHECK_INT(cai_sim_host_access(sim, "looks", &rest, 1), 0);
    reads_writes(s1, "fill again", 0, m1);
}

static void capture(void)
{
    reads_writes(s1, "before", 0, m1);
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_RELAXED), 0);
    reads_writes(s1, "fill", 0, m1);
    wait_for(e1, s1, s2);
    reads_writes(s2, "scale", m1, m2);
    wait_for(e2, s2, s1);
    CHECK_INT(cai_sim_capture_end(sim, s1, NULL), 0);
    reads_writes(s1, "after", m1, 0);
}

/* Two branches of a graph read what both have, and write to the same. */
static void graph(void)
{
    uint64_t made = 0, executable;
    CHECK_INT(cai_sim_capture_begin(sim, s1, CAI_SIM_MODE_RELAXED), 0);
    reads_writes(s1, "fill", 0, m1);
    wait_for(e1, s1, s2);
    reads_writes(s1, "sum", m1, m2);
    reads_writes(s2, "scale", m1, m2);
    wait_for(e2, s2, s1);
    CHECK_INT(cai_sim_capture_end(sim, s1, &made), 0);
    executable = cai_sim_graph_instantiate(sim, made);
    CHECK_INT(cai_sim_graph_destroy(sim, made), 0);
    CHECK_INT(cai_sim_graph_launch(sim, executable, s3), 0);
    reads_writes(s3, "use", m2, 0);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, executable), 0);
}

static void chain(void)
{
    reads_writes(s1, "fill", 0, m1);
    wait_for(e1, s1, s2);
    reads_writes(s2, "scale", m1, m2);
    wait_for(e2, s2, s3);
    reads_writes(s3, "sum", m2, m3);
    wait_for(e1, s3, s1); /* the first hears of the last, and by that of the second */
    CHECK_INT(cai_sim_free(sim, 0), 0);
    reads_writes(s1, "fill again", 0, m1);
}

static void chain_cut(void)
{
    reads_writes(s1, "fill", 0, m1);
    wait_for(e1, s1, s2);
    reads_writes(s2, "scale", m1, m2);
    reads_writes(s3, "sum of both", m1, m3);
    reads_writes(s2, "fill again", 0, m1);
}

static void threads(void)
{
    uint64_t published;
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    reads_writes(s1, "fill", 0, m1);
    CHECK_INT(cai_sim_stream_synchronize(sim, s1), 0);
    published = cai_sim_publish(sim);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    reads_writes(s2, "does not know", m1, 0);
    CHECK_INT(cai_sim_observe(sim, published), 0);
    reads_writes(s3, "knows", m1, 0);
    cai_sim_host_thread(sim, 0);
}

static void lost(void)
{
    reads_writes(s1, "fill", 0, m1);
    (void)cai_sim_run(sim);
    CHECK_INT(cai_sim_free(sim, m1), 0);
    reads_writes(s1, "uses what is gone", m1, m2);
    reads_writes(s1, "comes after an error", m2, 0);
    (void)cai_sim_run(sim);
    m1 = 0;
}

static void names(void)
{
    reads_writes(s1, "a<b> & \"c\" \\ 'd'", 0, m1);
    reads_writes(s2, "\x01\x7f \xc3\xa9 \xff", m1, m2);
    reads_writes(s3, "", 0, 0);
}

/* The producer's memory goes to its next array while the consumer still reads. */
static void reused(void)
{
    reads_writes(s1, "fill", 0, m1);
    wait_for(e1, s1, s2);
    reads_writes(s2, "scale", m1, m2);
    reads_writes(s1, "fill the next", 0, m1);
}

/* Stream 2 is another one on each host thread: what is recorded here is not what was launched there. */
static void wrong_thread(void)
{
    cai_sim_host_thread(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    reads_writes(2, "fill", 0, m1);
    cai_sim_host_thread(sim, 2);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    wait_for(e1, 2, s2);
    reads_writes(s2, "scale", m1, m2);
    cai_sim_host_thread(sim, 0);
}

/* __dlpack__(stream=s2) makes s2 wait; the deleter runs while the consumer's kernel is queued, and frees in s1. */
static void deleted(int in_order)
{
    const cai_cuda *cuda = cai_sim_cuda(sim);
    uint64_t tensor = cai_sim_alloc(sim, CAI_SIM_MEM_POOL, 1024);
    reads_writes(s1, "fill", 0, tensor);
    wait_for(e1, s1, s2);
    reads_writes(s2, "scale", tensor, m2);
    if (in_order) wait_for(e2, s2, s1);
    CHECK_INT(cuda->memory_free_async(cuda->self, tensor, s1), 0);
    CHECK_INT(cuda->memory_alloc_async(cuda->self, &tensor, 1024, s1), 0);
    reads_writes(s1, "fill the next", 0, tensor);
}

static void deleted_early(void) { deleted(0); }
static void deleted_in_order(void) { deleted(1); }

/* A stream that does not block is not waited for. */
static void nonblocking(void)
{
    reads_writes(s1, "fill", 0, m1);
    reads_writes(1, "scale", m1, m2);
}

typedef struct program {
    const char *file, *title;
    void (*run)(void);
    int32_t races;
    const char *image;
} program;

static const program programs[PROGRAMS] = {
    {"right", "in order at both ends", right, 0, NULL},
    {"no_wait", "the wait is left out", no_wait, 1, NULL},
    {"no_back_edge", "the back edge is left out", no_back_edge, 1, NULL},
    {"legacy", "the legacy stream", legacy, 1, NULL},
    {"two_devices", "two devices", two_devices, 0, NULL},
    {"frees", "memory that goes too early", frees, 3, NULL},
    {"allocation", "a new array", allocation, 1, NULL},
    {"host", "the host takes part", host, 1, NULL},
    {"capture", "a capture", capture, 0, NULL},
    {"graph", "a graph whose branches race", graph, 2, NULL},
    {"chain", "three libraries in a chain", chain, 0, NULL},
    {"chain_cut", "a chain that is cut twice", chain_cut, 2, NULL},
    {"threads", "two host threads", threads, 1, NULL},
    {"lost", "work that never runs", lost, 1, NULL},
    {"names", "<names> & \"quotes\"", names, 1, NULL},
    {"reused", "Released too early: the next array gets the memory", reused, 1, "released-too-early.svg"},
    {"wrong_thread", "Stream 2 of the wrong host thread", wrong_thread, 1, "wrong-thread.svg"},
    {"nonblocking", "The legacy stream does not wait for everything", nonblocking, 1, "legacy.svg"},
    {"dlpack_race", "DLPack: the deleter frees while the consumer's kernel is queued", deleted_early, 1,
     "dlpack-race.svg"},
    {"dlpack", "DLPack: the deleter makes the producer's stream wait", deleted_in_order, 0, "dlpack.svg"}};

static const char *const labels[] = {"s1", "producer", "s2", "consumer", "per_thread", "2 of thread 1",
                                     "per_thread 2", "2 of thread 2", NULL};

static void open_simulation(void)
{
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    s1 = cai_sim_stream_create(sim, 1);
    s2 = cai_sim_stream_create(sim, 1);
    s3 = cai_sim_stream_create(sim, 1);
    m1 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
    m2 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
    m3 = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
    e1 = cai_sim_event_create(sim);
    e2 = cai_sim_event_create(sim);
}

/* The text of a program, to be freed. */
static char *text_of(const program *p)
{
    cai_timeline_options options;
    char *text;
    memset(&options, 0, sizeof options);
    options.title = p->title;
    options.labels = labels;
    open_simulation();
    p->run();
    text = cai_timeline_text(sim, &options);
    cai_sim_destroy(sim);
    return text;
}

/* --------------------------------------------------------------- golden files */
/* Line ends are not compared. 1: the same */
static int same(const char *a, const char *b)
{
    for (;; ++a, ++b) {
        while (*a == '\r') ++a;
        while (*b == '\r') ++b;
        if (*a != *b) return 0;
        if (!*a) return 1;
    }
}

static FILE *open_in(const char *folder, const char *name, const char *ending, const char *mode)
{
    char path[1024];
    if (strlen(folder) + strlen(name) + strlen(ending) + 2 > sizeof path) exit(2);
    (void)sprintf(path, "%s/%s%s", folder, name, ending);
    return fopen(path, mode);
}

/* The file's text; NULL if there is none. */
static const char *read_file(const char *folder, const char *name, const char *ending)
{
    static char text[MOST];
    FILE *file = open_in(folder, name, ending, "rb");
    if (!CHECK(file != NULL)) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    return text;
}

static void write_file(const char *folder, const char *name, const char *ending, const char *text)
{
    FILE *file = open_in(folder, name, ending, "wb");
    if (!CHECK(file != NULL)) return;
    (void)fputs(text, file);
    (void)fclose(file);
}

static int32_t count_lines(const char *text)
{
    int32_t count = 0;
    while ((text = strchr(text, '\n')) != NULL) {
        ++text;
        ++count;
    }
    return count;
}

/* The text with one line altered: another last number or letter, or no such line. */
static void alter(const char *text, int32_t line, int32_t leave_out, char *out)
{
    const char *begin = text, *end;
    char *last;
    for (; line; --line) begin = strchr(begin, '\n') + 1;
    end = strchr(begin, '\n') + 1;
    memcpy(out, text, (size_t)(begin - text));
    out += begin - text;
    if (!leave_out) {
        memcpy(out, begin, (size_t)(end - begin));
        for (last = out + (end - begin) - 1; last > out && !isalnum((unsigned char)*last);) --last;
        *last = *last == '1' ? '2' : '1';
        out += end - begin;
    }
    memcpy(out, end, strlen(end) + 1);
}

static void check_alterations(const char *golden, const char *text)
{
    static char altered[MOST];
    const int32_t lines = count_lines(golden);
    int32_t line, leave_out;
    for (line = 0; line < lines; ++line) {
        for (leave_out = 0; leave_out < 2; ++leave_out) {
            alter(golden, line, leave_out, altered);
            if (!CHECK(!same(altered, text))) printf("%s", altered);
        }
    }
}

static void check_golden(const char *folder, const program *p, const char *text)
{
    const char *golden = read_file(folder, p->file, ".txt");
    if (!golden) return;
    if (!CHECK(same(golden, text))) printf("it is\n%s", text);
    check_alterations(golden, text);
}

/* ------------------------------------------------------------------------ SVG */
static int32_t occurrences(const char *text, const char *what)
{
    int32_t count = 0;
    for (; (text = strstr(text, what)) != NULL; ++text) ++count;
    return count;
}

/* Past an entity, or NULL. */
static const char *entity(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", NULL};
    int32_t i;
    for (i = 0; known[i]; ++i)
        if (!strncmp(at, known[i], strlen(known[i]))) return at + strlen(known[i]);
    return NULL;
}

/* Past characters up to `stop`, or NULL. */
static const char *characters(const char *at, char stop)
{
    while (at && *at && *at != stop) {
        if (*at == '<' || ((unsigned char)*at < 32 && *at != '\n')) return NULL;
        at = *at == '&' ? entity(at) : at + 1;
    }
    return at && *at == stop ? at : NULL;
}

/* Past the attributes of an element, at ">" or "/>", or NULL. */
static const char *attributes(const char *at)
{
    while (at && *at == ' ') {
        ++at;
        while (isalnum((unsigned char)*at) || *at == '-' || *at == ':') ++at;
        if (at[0] != '=' || at[1] != '"') return NULL;
        at = characters(at + 2, '"');
        if (at) ++at;
    }
    return at;
}

static size_t name_length(const char *at)
{
    size_t length = 0;
    while (isalpha((unsigned char)at[length])) ++length;
    return length;
}

/* 1: elements nest, attributes are quoted, nothing is left unescaped, and there is one root. */
static int well_formed(const char *at)
{
    const char *open[16];
    int32_t depth = 0, roots = 0;
    while (at && *at == '<') {
        const char *name = at + (at[1] == '/' ? 2 : 1);
        const size_t length = name_length(name);
        if (at[1] == '/') {
            if (!depth-- || name_length(open[depth]) != length) return 0;
            if (strncmp(open[depth], name, length)) return 0;
            at = name + length;
        } else {
            roots += !depth;
            at = attributes(name + length);
            if (!at || !length || depth == 16) return 0;
            if (*at == '/') ++at;
            else open[depth++] = name;
        }
        if (*at != '>') return 0;
        ++at;
        at = depth ? characters(at, '<') : at + strspn(at, "\n");
    }
    return at && !*at && !depth && roots == 1;
}

typedef struct box {
    int32_t x, y, width, height;
} box;

enum { BOXES = 64 };
static box boxes[BOXES];
static int32_t box_count;

/* The number of an attribute of the element that begins at `at`. */
static int32_t attribute(const char *at, const char *name)
{
    const char *end = strchr(at, '>');
    const char *found = strstr(at, name);
    return found && found < end ? atoi(found + strlen(name)) : -1;
}

/* The boxes of work and marks; hatching lies on one of them. */
static void find_boxes(const char *svg)
{
    const char *at = svg;
    for (box_count = 0; (at = strstr(at, "<rect ")) != NULL; ++at) {
        box *b = &boxes[box_count];
        if (!strncmp(at, "<rect fill", 10) || !strncmp(at, "<rect class=\"page\"", 18)) continue;
        b->x = attribute(at, " x=\"");
        b->y = attribute(at, " y=\"");
        b->width = attribute(at, " width=\"");
        b->height = attribute(at, " height=\"");
        if (++box_count == BOXES) return;
    }
}

/* The numbers of races, which stand on their lines. */
static void check_badges(const char *svg, int32_t width)
{
    int32_t x[BOXES], y[BOXES], count = 0, i, j;
    const char *at = svg;
    for (; count < BOXES && (at = strstr(at, "<circle ")) != NULL; ++at) {
        x[count] = attribute(at, " cx=\"");
        y[count++] = attribute(at, " cy=\"");
    }
    for (i = 0; i < count; ++i)
        for (j = 0; j < i; ++j) CHECK(abs(x[i] - x[j]) >= 20 || abs(y[i] - y[j]) >= 19);
    for (i = 0; i < count; ++i) CHECK(x[i] + 10 < width);
}

static void check_no_overlap(int32_t width, int32_t height)
{
    int32_t i, j;
    for (i = 0; i < box_count; ++i) {
        const box *a = &boxes[i];
        CHECK(a->x > 0 && a->y > 0 && a->x + a->width < width && a->y + a->height < height);
        for (j = 0; j < i; ++j) {
            const box *b = &boxes[j];
            if (a->y >= b->y + b->height || b->y >= a->y + a->height) continue;
            CHECK(a->x >= b->x + b->width || b->x >= a->x + a->width);
        }
    }
}

/* How many characters a text has, entities being one. */
static int32_t text_length(const char *text)
{
    int32_t length = 0;
    for (; *text != '<'; ++length) {
        const char *past = *text == '&' ? entity(text) : NULL;
        text = past ? past : text + 1;
    }
    return length;
}

/* A monospaced character is 0.602 as wide as high in the widest of the usual fonts. */
static void check_text_fits(const char *at, int32_t width)
{
    const int32_t x = attribute(at, " x=\""), y = attribute(at, " y=\"");
    const int bold = !strncmp(at + 13, "name\"", 5) || strstr(at, "racedname\"") == at + 13 ||
                     strstr(at, "lostname\"") == at + 13;
    const int32_t needed = text_length(strchr(at, '>') + 1) * (bold ? 13 : 11) * 602 / 1000;
    int32_t i;
    CHECK(x > 0 && y > 0);
    if (strncmp(strstr(at, "anchor=\""), "anchor=\"middle", 14)) {
        if (!strncmp(at + 13, "small", 5)) CHECK(x + needed <= width);
        return;
    }
    if (!strncmp(at + 13, "badgename", 9)) return;
    for (i = 0; i < box_count; ++i) {
        const box *b = &boxes[i];
        if (x < b->x || x > b->x + b->width || y < b->y || y > b->y + b->height) continue;
        CHECK(needed + 8 <= b->width);
        return;
    }
    CHECK(0 && "a text that stands in no box");
}

static void check_geometry(const char *svg)
{
    const int32_t width = attribute(svg, " width=\""), height = attribute(svg, " height=\"");
    const char *at = svg;
    find_boxes(svg);
    CHECK(box_count > 0);
    check_no_overlap(width, height);
    check_badges(svg, width);
    while ((at = strstr(at, "<text class=\"")) != NULL) check_text_fits(at++, width);
}

/* All that the text has is drawn. */
static void check_drawing(const char *text, const char *svg)
{
    const int32_t marks = occurrences(text, "\nmark "), lanes = occurrences(text, "\nlane ");
    const int32_t work = occurrences(text, "\nspan ") + occurrences(text, "\nlost ");
    const int32_t arrows = occurrences(text, "\narrow "), races = occurrences(text, "\nrace ");
    if (!CHECK(well_formed(svg))) printf("%s", svg);
    CHECK_INT(occurrences(svg, "<path class=\"lane\""), lanes);
    CHECK_INT(occurrences(svg, "<path class=\"arrow\"") + occurrences(svg, "<path class=\"implicit\""),
              arrows);
    CHECK_INT(occurrences(svg, "<path class=\"race\""), races);
    CHECK_INT(occurrences(svg, "<circle class=\"badge\""), 2 * races);
    CHECK_INT(occurrences(svg, "<rect class=\"") - 1, marks + work);
    CHECK_INT(occurrences(svg, "prefers-color-scheme: dark"), 1);
    CHECK_INT(occurrences(svg, "<title ") + occurrences(svg, "<desc "), 2);
    check_geometry(svg);
}

static const char *folder, *images;
static int writes;

static void check_image(const program *p, const char *svg)
{
    const char *file;
    if (!images || !p->image) return;
    if (writes) write_file(images, p->image, "", svg);
    file = read_file(images, p->image, "");
    if (file) CHECK(same(file, svg));
}

static void check_program(const program *p)
{
    char *text = text_of(p), *svg;
    int32_t bad = -1;
    cai_test_note(p->file);
    CHECK_INT(occurrences(text, "\nrace "), p->races);
    if (folder && writes) write_file(folder, p->file, ".txt", text);
    if (folder) check_golden(folder, p, text);
    svg = cai_timeline_svg(text, &bad);
    CHECK_INT(bad, 0);
    if (CHECK(svg != NULL)) {
        check_drawing(text, svg);
        check_image(p, svg);
    }
    free(svg);
    free(text);
    cai_test_note("");
}

/* ------------------------------------------------------------------- contrast */
/* The fifth root, for the power 2.4, without the library of mathematics. */
static double fifth_root(double x)
{
    double root = 1;
    int32_t i;
    for (i = 0; i < 60; ++i) root = (4 * root + x / (root * root * root * root)) / 5;
    return root;
}

static double linear(int32_t byte)
{
    const double c = (double)byte / 255, x = (c + 0.055) / 1.055;
    const double root = fifth_root(x);
    return c <= 0.04045 ? c / 12.92 : x * x * root * root;
}

static double luminance(long color)
{
    return 0.2126 * linear((int32_t)(color >> 16 & 255)) + 0.7152 * linear((int32_t)(color >> 8 & 255)) +
           0.0722 * linear((int32_t)(color & 255));
}

static double contrast(long a, long b)
{
    const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
    return x > y ? x / y : y / x;
}

static long color_of(const char *style, const char *name, const char *property)
{
    char rule[64];
    const char *at;
    (void)sprintf(rule, "\n.%s {", name);
    at = strstr(style, rule);
    at = at ? strstr(at, property) : NULL;
    return CHECK(at != NULL) ? strtol(at + strlen(property), NULL, 16) : 0;
}

/* `share` percent of one color over another */
static long mixed(long over, long under, long share)
{
    long out = 0;
    int32_t shift;
    for (shift = 0; shift <= 16; shift += 8)
        out |= ((over >> shift & 255) * share + (under >> shift & 255) * (100 - share)) / 100 << shift;
    return out;
}

static void check_contrast(const char *style)
{
    static const char *const texts[][2] = {
        {"title", "page"},      {"label", "page"},       {"small", "page"},      {"sentence", "page"},
        {"name", "work"},       {"detail", "work"},      {"hostname", "host"},   {"lostname", "host"},
        {"ordername", "order"}, {"memoryname", "memory"}, {"badgename", "badge"}, {"racedname", "raced"},
        {"raceddetail", "raced"}};
    static const char *const lines[] = {"arrow", "implicit", "race", "raced", "work", "order", "memory",
                                        "axis"};
    const long page = color_of(style, "page", "fill:#"), hatch = color_of(style, "hatch", "stroke:#");
    size_t i;
    for (i = 0; i < sizeof texts / sizeof *texts; ++i) {
        const long under = color_of(style, texts[i][1], "fill:#");
        const long text = color_of(style, texts[i][0], "fill:#");
        cai_test_note(texts[i][0]);
        CHECK(contrast(text, under) >= 4.5);
        if (!strncmp(texts[i][0], "raced", 5)) CHECK(contrast(text, mixed(hatch, under, 16)) >= 4.5);
    }
    for (i = 0; i < sizeof lines / sizeof *lines; ++i) {
        cai_test_note(lines[i]);
        CHECK(contrast(color_of(style, lines[i], "stroke:#"), page) >= 3);
    }
    cai_test_note("");
}

static void colors(void)
{
    char *svg = cai_timeline_svg("timeline \"\"\n", NULL);
    if (!CHECK(svg != NULL)) return;
    check_contrast(strstr(svg, "<style>"));
    check_contrast(strstr(svg, "@media"));
    CHECK(contrast(0x000000, 0xffffff) > 20.99 && contrast(0x000000, 0xffffff) < 21.01);
    CHECK(contrast(0x767676, 0xffffff) > 4.5 && contrast(0x777777, 0xffffff) < 4.5);
    free(svg);
}

/* ---------------------------------------------------------------- other texts */
#define TWO_LANES "timeline \"t\"\nlane 1 \"a\" \"b\"\nlane 2 \"c\" \"d\"\n"
#define ITEMS TWO_LANES "span 1 1 0 8 \"x\" \"\"\nmark 2 2 8 wait \"y\"\n"

static void texts_that_are_wrong(void)
{
    static const struct {
        const char *text;
        int32_t line;
    } cases[] = {
        {ITEMS "arrow 1 2 \"\"\nrace 1 2 \"m\" \"s\"\n", 0},
        {ITEMS "arrow 1 2 \"no newline at the end\"", 0},
        {"", 1},
        {"lane 1 \"a\" \"b\"\n", 1},
        {"timeline\n", 1},
        {"timeline \"t\" \n", 1},
        {"timeline \"t\n", 1},
        {"timeline \"\\n\"\n", 1},
        {"timeline \"t\"\ntimeline \"t\"\n", 2},
        {"timeline \"t\"\n\n", 2},
        {"timeline \"t\"\nspan 1 1 0 8 \"x\" \"\"\n", 2},
        {"timeline \"t\"\nlane 2 \"a\" \"b\"\n", 2},
        {TWO_LANES "span 1 0 0 8 \"x\" \"\"\n", 4},
        {TWO_LANES "span 1 3 0 8 \"x\" \"\"\n", 4},
        {TWO_LANES "span 1 1 8 8 \"x\" \"\"\n", 4},
        {TWO_LANES "span 1 1 -1 8 \"x\" \"\"\n", 4},
        {TWO_LANES "span 1 1 0 1234567890 \"x\" \"\"\n", 4},
        {TWO_LANES "span 1 1 0 8 \"x\"\n", 4},
        {TWO_LANES "mark 1 1 0 dance \"x\"\n", 4},
        {TWO_LANES "mark 1 1 0 waits \"x\"\n", 4},
        {TWO_LANES "step 1 1 0 8 \"x\" \"\"\n", 4},
        {ITEMS "span 2 1 9 10 \"not ascending\" \"\"\n", 6},
        {ITEMS "span 3 1 7 10 \"overlaps\" \"\"\n", 6},
        {ITEMS "arrow 2 1 \"back in time\"\n", 6},
        {ITEMS "arrow 1 3 \"to nowhere\"\n", 6},
        {ITEMS "span 3 1 8 9 \"\" \"\"\narrow 1 3 \"one lane\"\n", 7},
        {ITEMS "race 1 2 \"m\"\n", 6},
        {ITEMS "race 1 1 \"m\" \"s\"\n", 6},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
        int32_t bad = -1;
        char *svg = cai_timeline_svg(cases[i].text, &bad);
        cai_test_note(cases[i].text);
        CHECK_INT(bad, cases[i].line);
        CHECK((svg == NULL) == (cases[i].line != 0));
        if (svg) CHECK(well_formed(svg));
        free(svg);
    }
    cai_test_note("");
}

static void options(void)
{
    cai_timeline_options all;
    char *text;
    memset(&all, 0, sizeof all);
    open_simulation();
    text = cai_timeline_text(sim, NULL);
    CHECK_STR(text, "timeline \"\"\n");
    free(text);
    exchange(0, 0);
    all.first = cai_sim_operation_count(sim); /* the last: it has no race, and time begins with it */
    text = cai_timeline_text(sim, &all);
    CHECK(strstr(text, "\nlane 1 \"s1\" \"s1\"\nspan ") != NULL);
    CHECK(strstr(text, " 1 0 8 \"fill again\" \"writes m1\"\n") != NULL);
    CHECK_INT(count_lines(text), 3);
    free(text);
    cai_sim_destroy(sim);
}

static void well_formed_knows(void)
{
    CHECK(well_formed("<a><b x=\"1\"/>&amp;<c>&lt;</c></a>\n"));
    CHECK(!well_formed("<a><b></a></b>"));
    CHECK(!well_formed("<a>"));
    CHECK(!well_formed("<a/><b/>"));
    CHECK(!well_formed("<a>&</a>"));
    CHECK(!well_formed("<a x=1/>"));
    CHECK(!well_formed("<a x=\"<\"/>"));
    CHECK(!well_formed("<a>\x01</a>"));
    CHECK(!well_formed("<a></ab>"));
}

/* ------------------------------------------------------------------------ fuzz */
static uint64_t state = 1;

static uint32_t pick(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Bytes changed, ends of lines taken out or doubled. */
static void spoil(char *text)
{
    static const char bytes[] = "\"\\ \n0129-azmspr\x01\xc3\xa9\xf0\xff";
    uint32_t times = pick(4) + 1;
    for (; times && *text; --times) {
        char *at = text + pick((uint32_t)strlen(text)), *end = strchr(at, '\n');
        const uint32_t how = pick(4);
        if (how < 2 || !end) *at = bytes[pick(sizeof bytes - 1)];
        else if (how == 2) memmove(at, end + 1, strlen(end + 1) + 1);
        else memmove(end + 1, at, strlen(at) + 1);
    }
}

static void fuzz(int32_t rounds)
{
    static char text[2 * MOST];
    int32_t drawn = 0, round;
    for (round = 0; round < rounds; ++round) {
        char *from = text_of(&programs[pick(PROGRAMS)]), *svg;
        int32_t bad = -1;
        (void)strcpy(text, from);
        spoil(text);
        svg = cai_timeline_svg(text, &bad);
        CHECK((svg != NULL) == (bad == 0) && bad >= 0 && bad <= count_lines(text) + 1);
        if (svg && !CHECK(well_formed(svg))) printf("%s", text);
        drawn += svg != NULL;
        free(svg);
        free(from);
    }
    CHECK(drawn > rounds / 50 && drawn < rounds);
}

/* What any text that is one must look like: lanes with work and marks, and races across them. */
static void random_text(char *text)
{
    int32_t end[4] = {0, 0, 0, 0}, lane_of[16];
    const int32_t lanes = (int32_t)pick(3) + 2, items = (int32_t)pick(12) + 4;
    int32_t i, races = (int32_t)pick(24);
    text += sprintf(text, "timeline \"any\"\n");
    for (i = 1; i <= lanes; ++i)
        text += sprintf(text, "lane %d \"s%d\" \"%.*s\"\n", (int)i, (int)i, (int)i * 3, "WWWWWWWWWWWW");
    for (i = 0; i < items; ++i) {
        const int32_t lane = (int32_t)pick((uint32_t)lanes), start = end[lane] + (int32_t)pick(5);
        const int name = (int)pick(24), accesses = (int)pick(24);
        const char *word = pick(9) ? "span" : "lost";
        lane_of[i] = lane;
        end[lane] = start + 1 + (int32_t)pick(9);
        text += sprintf(text, "%s %d %d %d %d ", word, (int)i + 1, (int)lane + 1, (int)start, (int)end[lane]);
        text += sprintf(text, "\"%.*s\" \"%.*s\"\n", name, "a kernel with a long name", accesses,
                        "reads m1, m2, writes m3");
    }
    while (races--) {
        const int32_t a = (int32_t)pick((uint32_t)items), b = (int32_t)pick((uint32_t)items);
        if (lane_of[a] != lane_of[b])
            text += sprintf(text, "race %d %d \"m\" \"this, then that\"\n", (int)a + 1, (int)b + 1);
    }
}

static void any_text(int32_t rounds)
{
    static char text[MOST];
    int32_t round;
    for (round = 0; round < rounds; ++round) {
        char *svg;
        random_text(text);
        svg = cai_timeline_svg(text, NULL);
        cai_test_note("a random text");
        if (CHECK(svg != NULL)) check_drawing(text, svg);
        free(svg);
    }
    cai_test_note("");
}

int main(int argc, char **argv)
{
    int32_t i;
    folder = argc > 1 ? argv[1] : NULL;
    images = argc > 2 ? argv[2] : NULL;
    writes = argc > 3 && !strcmp(argv[3], "--write");
    for (i = 0; i < PROGRAMS; ++i) check_program(&programs[i]);
    well_formed_knows();
    texts_that_are_wrong();
    options();
    colors();
    fuzz(1000);
    any_text(300);
    if (!folder) printf("no folder with golden files given: not compared\n");
    return cai_test_end();
}
