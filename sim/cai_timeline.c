/* cai_timeline.c - the timelines of cai_timeline.h
 * SPDX-License-Identifier: MIT
 *
 *   >>support  growing arrays and text
 *   >>telling  a trace to text
 *   >>reading  a text to lanes, items, links
 *   >>layout   where everything goes
 *   >>drawing  the SVG */
#include "cai_timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ >>support */
typedef struct tl_text {
    char *data;
    size_t length, capacity;
} tl_text;

/* Without memory the program ends, as that of the simulation does. */
static void *tl_memory(void *items, size_t bytes)
{
    void *more = realloc(items, bytes ? bytes : 1);
    if (!more) abort();
    return more;
}

/* Room for one more: capacities are powers of 2. */
static void *tl_grow(void *items, int32_t count, size_t size)
{
    if (count & (count - 1)) return items;
    return tl_memory(items, (count ? 2 * (size_t)count : 1) * size);
}

static void tl_put_bytes(tl_text *text, const char *more, size_t length)
{
    if (text->length + length + 1 > text->capacity) {
        text->capacity = 2 * (text->length + length + 1);
        text->data = (char *)tl_memory(text->data, text->capacity);
    }
    memcpy(text->data + text->length, more, length);
    text->length += length;
    text->data[text->length] = 0;
}

static void tl_put(tl_text *text, const char *more)
{
    tl_put_bytes(text, more, strlen(more));
}

static void tl_put_number(tl_text *text, int64_t number)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = number < 0 ? (uint64_t)-number : (uint64_t)number;
    *--at = 0;
    do *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0) *--at = '-';
    tl_put(text, at);
}

static void tl_put_quoted(tl_text *text, const char *string)
{
    tl_put(text, "\"");
    for (; *string; ++string) {
        const unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\') tl_put(text, "\\");
        tl_put_bytes(text, c < 32 || c == 127 ? "?" : string, 1);
    }
    tl_put(text, "\"");
}

/* ------------------------------------------------------------------ >>telling */
enum { TL_WORK = 8, TL_NAME = 64 };

typedef struct tl_run_lane {
    uint64_t stream, capture, thread; /* stream 0: the host thread */
    uint64_t last;                    /* when the last thing in it ended; of a host thread its clock */
    int32_t shown, number, branch;
} tl_run_lane;

typedef struct tl_run {
    cai_sim *sim;
    const cai_timeline_options *options;
    uint64_t count, first, origin;
    uint64_t *start, *end; /* by operation */
    int32_t *lane;         /* by operation; -1: not shown */
    cai_check_order *order;
    cai_sim_access *allocations;
    cai_check_race *races;
    tl_run_lane *lanes;
    int32_t allocation_count, race_count, lane_count, shown_count;
    tl_text out;
} tl_run;

static cai_sim_operation tl_operation(const tl_run *run, uint64_t id)
{
    cai_sim_operation op;
    (void)cai_sim_operation_get(run->sim, id, &op);
    return op;
}

static int32_t tl_run_lane_of(tl_run *run, uint64_t stream, uint64_t capture, int32_t branch,
                              uint64_t thread)
{
    tl_run_lane *lane;
    int32_t i;
    for (i = 0; i < run->lane_count; ++i) {
        lane = &run->lanes[i];
        if (lane->stream != stream || lane->capture != capture || lane->branch != branch) continue;
        if (stream || lane->thread == thread) return i;
    }
    run->lanes = (tl_run_lane *)tl_grow(run->lanes, run->lane_count, sizeof *run->lanes);
    lane = &run->lanes[run->lane_count];
    memset(lane, 0, sizeof *lane);
    lane->stream = stream;
    lane->capture = capture;
    lane->branch = branch;
    lane->thread = thread;
    return run->lane_count++;
}

/* Allocations stand in nobody's way until they race. */
static int tl_is_shown(const tl_run *run, const cai_sim_operation *op)
{
    int32_t i, shown = op->kind != CAI_SIM_OP_ALLOC;
    for (i = 0; i < run->race_count && !shown; ++i)
        shown = run->races[i].first == op->id || run->races[i].second == op->id;
    return shown && op->id >= run->first;
}

static int tl_is_work(const cai_sim_operation *op)
{
    return op->kind == CAI_SIM_OP_LAUNCH || op->kind == CAI_SIM_OP_COPY ||
           op->kind == CAI_SIM_OP_HOST_FUNCTION || op->kind == CAI_SIM_OP_HOST_ACCESS;
}

/* Who comes before an allocation comes before all work on the memory, too: of races with both, only those
 * with the work are told. */
static int tl_is_told_otherwise(const tl_run *run, const cai_check_race *race, const cai_check_race *other)
{
    const cai_sim_operation allocation = tl_operation(run, race->first);
    const cai_sim_operation work = tl_operation(run, other->first);
    return allocation.kind == CAI_SIM_OP_ALLOC && other->second == race->second && work.id > allocation.id &&
           work.stream == allocation.stream && other->memory == race->memory &&
           other->address >= allocation.accesses[0].address &&
           other->address - allocation.accesses[0].address < allocation.accesses[0].bytes;
}

static void tl_find_races(tl_run *run)
{
    const int32_t count = cai_check_races(run->sim, NULL, 0);
    int32_t i, j;
    run->races = (cai_check_race *)tl_memory(NULL, (size_t)count * sizeof *run->races);
    (void)cai_check_races(run->sim, run->races, count);
    for (i = 0; i < count; ++i) {
        for (j = i + 1; j < count; ++j)
            if (tl_is_told_otherwise(run, &run->races[i], &run->races[j])) break;
        if (j == count) run->races[run->race_count++] = run->races[i];
    }
}

static void tl_time(tl_run *run, const cai_sim_operation *op)
{
    const int32_t host = tl_run_lane_of(run, 0, 0, 0, op->thread);
    const int32_t at = op->stream ? tl_run_lane_of(run, op->stream, op->capture, op->branch, 0) : host;
    uint64_t start = run->lanes[host].last;
    int32_t i;
    if (run->lanes[at].last > start) start = run->lanes[at].last;
    for (i = 0; i < op->wait_count; ++i)
        if (run->end[op->waits[i]] > start) start = run->end[op->waits[i]];
    run->start[op->id] = start;
    run->end[op->id] = start + (tl_is_work(op) ? TL_WORK : 1);
    if (op->stream) ++run->lanes[host].last;
    run->lanes[at].last = run->end[op->id];
    run->lane[op->id] = tl_is_shown(run, op) ? at : -1;
    if (run->lane[op->id] < 0) return;
    run->lanes[at].shown = 1;
    if (start < run->origin) run->origin = start;
}

static void tl_note_allocation(tl_run *run, const cai_sim_operation *op)
{
    if (op->kind != CAI_SIM_OP_ALLOC || op->access_count < 1) return;
    run->allocations = (cai_sim_access *)tl_grow(run->allocations, run->allocation_count,
                                                 sizeof *run->allocations);
    run->allocations[run->allocation_count++] = op->accesses[0];
}

/* Host threads stand below streams: what they wait for is mostly the end of it all. */
static void tl_number_lanes(tl_run *run)
{
    int32_t host, i;
    for (host = 0; host < 2; ++host) {
        for (i = 0; i < run->lane_count; ++i) {
            tl_run_lane *lane = &run->lanes[i];
            if (lane->shown && (lane->stream == 0) == host) lane->number = ++run->shown_count;
        }
    }
}

/* "s1", "host", "host 2" */
static void tl_lane_name(const tl_run *run, const tl_run_lane *lane, char *name)
{
    tl_text text = {NULL, 0, 0};
    int32_t i, host = 0;
    if (lane->stream) {
        cai_sim_stream_name(run->sim, lane->stream, name, TL_NAME);
        return;
    }
    for (i = 0; &run->lanes[i] <= lane; ++i) host += !run->lanes[i].stream;
    tl_put(&text, "host ");
    tl_put_number(&text, host);
    memcpy(name, text.data, text.length + 1);
    if (host == 1) name[4] = 0;
    free(text.data);
}

/* A name or a label, with the capture and the branch. */
static void tl_put_lane(tl_text *out, const char *name, const tl_run_lane *lane)
{
    tl_text full = {NULL, 0, 0};
    tl_put(&full, name);
    if (lane->capture) tl_put(&full, " capture ");
    if (lane->capture) tl_put_number(&full, (int64_t)lane->capture);
    if (lane->branch) tl_put(&full, " branch ");
    if (lane->branch) tl_put_number(&full, lane->branch);
    tl_put(out, " ");
    tl_put_quoted(out, full.data);
    free(full.data);
}

static void tl_tell_lane(tl_run *run, const tl_run_lane *lane)
{
    const char *const *labels = run->options->labels;
    char name[TL_NAME];
    const char *label = name;
    tl_lane_name(run, lane, name);
    for (; labels && labels[0] && labels[1]; labels += 2)
        if (!strcmp(labels[0], name)) label = labels[1];
    tl_put(&run->out, "lane ");
    tl_put_number(&run->out, lane->number);
    tl_put_lane(&run->out, name, lane);
    tl_put_lane(&run->out, label, lane);
    tl_put(&run->out, "\n");
}

static void tl_put_memory(const tl_run *run, tl_text *text, const cai_sim_access *access)
{
    const cai_sim_access *whole = run->allocations, *end = whole + run->allocation_count;
    char name[TL_NAME];
    cai_sim_access_name(run->sim, access, name, sizeof name);
    while (whole < end && (whole->address != access->address || whole->bytes != access->bytes)) ++whole;
    if (whole < end) name[strcspn(name, "[")] = 0;
    tl_put(text, name);
}

static void tl_put_accesses(const tl_run *run, tl_text *text, const cai_sim_operation *op)
{
    static const char *const verbs[] = {"reads ", "writes ", "may write ", "may read ", "may access "};
    int32_t write, i, count;
    for (write = 0; write <= CAI_SIM_MAY_ACCESS; ++write) {
        for (i = count = 0; i < op->access_count; ++i) {
            if (op->accesses[i].write != write) continue;
            if (text->length) tl_put(text, ", ");
            if (!count++) tl_put(text, verbs[write]);
            tl_put_memory(run, text, &op->accesses[i]);
        }
    }
}

static const char *tl_mark_kind(int32_t kind)
{
    switch (kind) {
    case CAI_SIM_OP_RECORD: return "record";
    case CAI_SIM_OP_WAIT: return "wait";
    case CAI_SIM_OP_ALLOC: return "alloc";
    case CAI_SIM_OP_FREE: return "free";
    case CAI_SIM_OP_PUBLISH: return "publish";
    case CAI_SIM_OP_OBSERVE: return "observe";
    case CAI_SIM_OP_GRAPH: return "graph";
    default: return "synchronize";
    }
}

/* "record e1", "free m1", "stream_synchronize", "publish" */
static void tl_put_mark_name(const tl_run *run, tl_text *text, const cai_sim_operation *op)
{
    const int named = (op->kind == CAI_SIM_OP_SYNCHRONIZE || op->kind == CAI_SIM_OP_GRAPH) && op->name[0];
    tl_put(text, named ? op->name : tl_mark_kind(op->kind));
    if (op->kind == CAI_SIM_OP_RECORD || op->kind == CAI_SIM_OP_WAIT) {
        tl_put(text, " e");
        tl_put_number(text, op->event_number);
    }
    if ((op->kind == CAI_SIM_OP_ALLOC || op->kind == CAI_SIM_OP_FREE) && op->access_count) {
        tl_put(text, " ");
        tl_put_memory(run, text, &op->accesses[0]);
    }
}

static void tl_tell_operation(tl_run *run, const cai_sim_operation *op)
{
    const int work = tl_is_work(op);
    tl_text *out = &run->out, more = {NULL, 0, 0};
    tl_put(out, !work ? "mark " : op->state == CAI_SIM_STATE_DROPPED ? "lost " : "span ");
    tl_put_number(out, (int64_t)op->id);
    tl_put(out, " ");
    tl_put_number(out, run->lanes[run->lane[op->id]].number);
    tl_put(out, " ");
    tl_put_number(out, (int64_t)(run->start[op->id] - run->origin));
    tl_put(out, " ");
    if (work) {
        tl_put_number(out, (int64_t)(run->end[op->id] - run->origin));
        tl_put(out, " ");
        tl_put_quoted(out, op->name);
        tl_put_accesses(run, &more, op);
    } else {
        tl_put(out, tl_mark_kind(op->kind));
        tl_put_mark_name(run, &more, op);
    }
    tl_put(out, " ");
    tl_put_quoted(out, more.data ? more.data : "");
    tl_put(out, "\n");
    free(more.data);
}

static void tl_put_pair(tl_text *out, const char *word, uint64_t first, uint64_t second)
{
    tl_put(out, word);
    tl_put_number(out, (int64_t)first);
    tl_put(out, " ");
    tl_put_number(out, (int64_t)second);
    tl_put(out, " ");
}

/* What else it waited for came after `from`: that arrow says it all. */
static int tl_is_implied(const tl_run *run, const cai_sim_operation *op, uint64_t from)
{
    int32_t i;
    for (i = 0; i < op->wait_count; ++i)
        if (cai_check_before(run->order, from, op->waits[i])) return 1;
    return 0;
}

static void tl_tell_arrows(tl_run *run, const cai_sim_operation *op)
{
    int32_t i;
    for (i = 0; i < op->wait_count; ++i) {
        const cai_sim_operation from = tl_operation(run, op->waits[i]);
        const int asked = op->kind == CAI_SIM_OP_WAIT && from.kind == CAI_SIM_OP_RECORD &&
                          from.event_number == op->event_number;
        char label[TL_NAME] = "";
        if (run->lane[from.id] < 0 || run->lane[from.id] == run->lane[op->id]) continue;
        if (!asked && tl_is_implied(run, op, from.id)) continue;
        if (op->stream && !op->executable) memcpy(label, "implicit", sizeof "implicit");
        if (asked) snprintf(label, sizeof label, "e%d", (int)op->event_number);
        tl_put_pair(&run->out, "arrow ", from.id, op->id);
        tl_put_quoted(&run->out, label);
        tl_put(&run->out, "\n");
    }
}

static void tl_tell_races(tl_run *run)
{
    char memory[TL_NAME], sentence[CAI_CHECK_TEXT];
    cai_sim_access where;
    int32_t i;
    for (i = 0; i < run->race_count; ++i) {
        const cai_check_race *race = &run->races[i];
        if (run->lane[race->first] < 0 || run->lane[race->second] < 0) continue;
        where = cai_sim_reads(race->address, race->bytes);
        where.memory = race->memory;
        cai_sim_access_name(run->sim, &where, memory, sizeof memory);
        cai_check_race_text(run->sim, race, sentence);
        tl_put_pair(&run->out, "race ", race->first, race->second);
        tl_put_quoted(&run->out, memory);
        tl_put(&run->out, " ");
        tl_put_quoted(&run->out, sentence);
        tl_put(&run->out, "\n");
    }
}

static void tl_tell(tl_run *run)
{
    uint64_t id;
    int32_t number, i;
    tl_put(&run->out, "timeline ");
    tl_put_quoted(&run->out, run->options->title ? run->options->title : "");
    tl_put(&run->out, "\n");
    for (number = 1; number <= run->shown_count; ++number)
        for (i = 0; i < run->lane_count; ++i)
            if (run->lanes[i].number == number) tl_tell_lane(run, &run->lanes[i]);
    for (id = 1; id <= run->count; ++id) {
        const cai_sim_operation op = tl_operation(run, id);
        if (run->lane[id] >= 0) tl_tell_operation(run, &op);
    }
    for (id = 1; id <= run->count; ++id) {
        const cai_sim_operation op = tl_operation(run, id);
        if (run->lane[id] >= 0) tl_tell_arrows(run, &op);
    }
    tl_tell_races(run);
}

static void tl_run_make(tl_run *run)
{
    const size_t count = (size_t)(run->count = cai_sim_operation_count(run->sim)) + 1;
    uint64_t id;
    run->first = run->options->first;
    run->origin = ~(uint64_t)0;
    run->start = (uint64_t *)tl_memory(NULL, count * sizeof *run->start);
    run->end = (uint64_t *)tl_memory(NULL, count * sizeof *run->end);
    run->lane = (int32_t *)tl_memory(NULL, count * sizeof *run->lane);
    run->order = cai_check_order_make(run->sim);
    tl_find_races(run);
    for (id = 1; id <= run->count; ++id) {
        const cai_sim_operation op = tl_operation(run, id);
        tl_note_allocation(run, &op);
        tl_time(run, &op);
    }
    tl_number_lanes(run);
}

static void tl_run_free(tl_run *run)
{
    cai_check_order_free(run->order);
    free(run->start);
    free(run->end);
    free(run->lane);
    free(run->allocations);
    free(run->races);
    free(run->lanes);
}

char *cai_timeline_text(cai_sim *sim, const cai_timeline_options *options)
{
    cai_timeline_options none;
    tl_run run;
    memset(&none, 0, sizeof none);
    memset(&run, 0, sizeof run);
    run.sim = sim;
    run.options = options ? options : &none;
    tl_run_make(&run);
    tl_tell(&run);
    tl_run_free(&run);
    return run.out.data;
}

/* ------------------------------------------------------------------ >>reading */
enum { TL_SPAN, TL_LOST, TL_MARK };

typedef struct tl_lane {
    char *name, *label;
} tl_lane;

typedef struct tl_item {
    int32_t number, lane, start, end; /* lane: from 0 */
    int32_t form;                     /* TL_SPAN, ... */
    char *kind;                       /* of a mark */
    char *name, *detail;
    int32_t raced;
    int32_t x0, x1, y0, y1; /* its box */
} tl_item;

/* An arrow or a race */
typedef struct tl_link {
    int32_t from, to; /* items */
    char *label, *sentence;
    int32_t x, y; /* of the label, or of the number of a race */
} tl_link;

typedef struct tl_document {
    char *title;
    tl_lane *lanes;
    tl_item *items;
    tl_link *arrows, *races;
    int32_t lane_count, item_count, arrow_count, race_count;
    const char *at; /* reading */
} tl_document;

static void tl_free_links(tl_link *links, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        free(links[i].label);
        free(links[i].sentence);
    }
    free(links);
}

static void tl_document_free(tl_document *doc)
{
    int32_t i;
    for (i = 0; i < doc->lane_count; ++i) {
        free(doc->lanes[i].name);
        free(doc->lanes[i].label);
    }
    for (i = 0; i < doc->item_count; ++i) {
        free(doc->items[i].kind);
        free(doc->items[i].name);
        free(doc->items[i].detail);
    }
    tl_free_links(doc->arrows, doc->arrow_count);
    tl_free_links(doc->races, doc->race_count);
    free(doc->lanes);
    free(doc->items);
    free(doc->title);
}

/* The length of the UTF-8 character at `s`, 1 to 4; 0: it is none, or one that XML does not take. */
static size_t tl_character(const char *s, uint32_t *point)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char c = (unsigned char)*s;
    const size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    size_t i;
    *point = length == 1 ? c : length ? c & (0xffu >> (length + 1)) : 0;
    for (i = 1; i < length; ++i) {
        if (((unsigned char)s[i] & 0xc0) != 0x80) return 0;
        *point = *point << 6 | ((unsigned char)s[i] & 0x3fu);
    }
    if (!length || *point < 32 || *point == 127 || *point < least[length] || *point > 0x10ffff) return 0;
    return (*point >= 0xd800 && *point < 0xe000) || (*point & 0xfffe) == 0xfffe ? 0 : length;
}

static int tl_space(tl_document *doc)
{
    if (*doc->at != ' ') return 0;
    ++doc->at;
    return 1;
}

static int tl_read_number(tl_document *doc, int32_t *number)
{
    int32_t digits;
    *number = 0;
    if (!tl_space(doc)) return 0;
    for (digits = 0; *doc->at >= '0' && *doc->at <= '9'; ++digits, ++doc->at) {
        if (digits == 9) return 0;
        *number = 10 * *number + (*doc->at - '0');
    }
    return digits > 0;
}

/* A string in quotes; what XML does not take becomes "?". */
static int tl_read_string(tl_document *doc, char **string)
{
    tl_text text = {NULL, 0, 0};
    uint32_t point;
    if (!tl_space(doc) || *doc->at != '"') return 0;
    tl_put(&text, "");
    *string = text.data;
    for (++doc->at; *doc->at != '"';) {
        size_t length;
        if (!*doc->at || *doc->at == '\n') return 0;
        if (*doc->at == '\\' && (doc->at[1] == '"' || doc->at[1] == '\\')) ++doc->at;
        else if (*doc->at == '\\') return 0;
        length = tl_character(doc->at, &point);
        tl_put_bytes(&text, length ? doc->at : "?", length ? length : 1);
        *string = text.data;
        doc->at += length ? length : 1;
    }
    ++doc->at;
    return 1;
}

/* A word of a list, as a copy. */
static int tl_read_word(tl_document *doc, const char *const *words, char **word)
{
    if (!tl_space(doc)) return 0;
    for (; *words; ++words) {
        const size_t length = strlen(*words);
        if (strncmp(doc->at, *words, length) || doc->at[length] != ' ') continue;
        *word = (char *)tl_memory(NULL, length + 1);
        memcpy(*word, *words, length + 1);
        doc->at += length;
        return 1;
    }
    return 0;
}

static int tl_read_lane(tl_document *doc)
{
    int32_t number;
    tl_lane *lane;
    doc->lanes = (tl_lane *)tl_grow(doc->lanes, doc->lane_count, sizeof *doc->lanes);
    lane = &doc->lanes[doc->lane_count++];
    memset(lane, 0, sizeof *lane);
    return tl_read_number(doc, &number) && number == doc->lane_count && tl_read_string(doc, &lane->name) &&
           tl_read_string(doc, &lane->label);
}

/* In a lane one thing comes after the other. */
static int tl_item_follows(const tl_document *doc, const tl_item *item)
{
    int32_t i;
    if (item->lane < 0 || item->lane >= doc->lane_count || item->start >= item->end) return 0;
    for (i = doc->item_count - 2; i >= 0; --i)
        if (doc->items[i].lane == item->lane) return doc->items[i].end <= item->start;
    return 1;
}

static int tl_read_detail(tl_document *doc, tl_item *item)
{
    tl_text text = {NULL, 0, 0};
    if (!tl_read_string(doc, &item->detail)) return 0;
    if (item->form != TL_LOST) return 1;
    tl_put(&text, item->detail);
    tl_put(&text, text.length ? "; did not run" : "did not run");
    free(item->detail);
    item->detail = text.data;
    return 1;
}

static int tl_read_item(tl_document *doc, int32_t form)
{
    static const char *const kinds[] = {"record", "wait",    "synchronize", "alloc",
                                        "free",   "publish", "observe",     "graph", NULL};
    tl_item *item;
    doc->items = (tl_item *)tl_grow(doc->items, doc->item_count, sizeof *doc->items);
    item = &doc->items[doc->item_count++];
    memset(item, 0, sizeof *item);
    item->form = form;
    if (!tl_read_number(doc, &item->number) || !tl_read_number(doc, &item->lane)) return 0;
    if (doc->item_count > 1 && item->number <= item[-1].number) return 0;
    --item->lane;
    if (!tl_read_number(doc, &item->start)) return 0;
    item->end = item->start + 1;
    if (form == TL_MARK && !tl_read_word(doc, kinds, &item->kind)) return 0;
    if (form != TL_MARK && !tl_read_number(doc, &item->end)) return 0;
    if (!tl_read_string(doc, &item->name)) return 0;
    return (form == TL_MARK || tl_read_detail(doc, item)) && tl_item_follows(doc, item);
}

static int32_t tl_find_item(const tl_document *doc, int32_t number)
{
    int32_t low = 0, high = doc->item_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (doc->items[middle].number < number) low = middle + 1;
        else high = middle;
    }
    return low < doc->item_count && doc->items[low].number == number ? low : -1;
}

static int tl_read_link(tl_document *doc, tl_link *link)
{
    memset(link, 0, sizeof *link);
    if (!tl_read_number(doc, &link->from) || !tl_read_number(doc, &link->to)) return 0;
    link->from = tl_find_item(doc, link->from);
    link->to = tl_find_item(doc, link->to);
    if (link->from < 0 || link->to < 0 || !tl_read_string(doc, &link->label)) return 0;
    return doc->items[link->from].lane != doc->items[link->to].lane;
}

static int tl_read_arrow(tl_document *doc)
{
    tl_link *arrow;
    doc->arrows = (tl_link *)tl_grow(doc->arrows, doc->arrow_count, sizeof *doc->arrows);
    arrow = &doc->arrows[doc->arrow_count++];
    return tl_read_link(doc, arrow) && doc->items[arrow->from].end <= doc->items[arrow->to].start;
}

static int tl_read_race(tl_document *doc)
{
    tl_link *race;
    doc->races = (tl_link *)tl_grow(doc->races, doc->race_count, sizeof *doc->races);
    race = &doc->races[doc->race_count++];
    if (!tl_read_link(doc, race) || !tl_read_string(doc, &race->sentence)) return 0;
    doc->items[race->from].raced = doc->items[race->to].raced = 1;
    return 1;
}

static int tl_read_line(tl_document *doc)
{
    static const char *const words[] = {"timeline", "lane", "span", "lost", "mark", "arrow", "race"};
    enum { WORDS = 7 };
    int32_t word;
    for (word = 0; word < WORDS; ++word) {
        const size_t length = strlen(words[word]);
        if (strncmp(doc->at, words[word], length) || doc->at[length] != ' ') continue;
        doc->at += length;
        break;
    }
    if ((word == 0) != !doc->title) return 0; /* the title is the first line, and no other */
    switch (word) {
    case 0: return tl_read_string(doc, &doc->title);
    case 1: return tl_read_lane(doc);
    case 2: return tl_read_item(doc, TL_SPAN);
    case 3: return tl_read_item(doc, TL_LOST);
    case 4: return tl_read_item(doc, TL_MARK);
    case 5: return tl_read_arrow(doc);
    case 6: return tl_read_race(doc);
    default: return 0;
    }
}

/* 0, or the number of the line that is wrong. */
static int32_t tl_read(tl_document *doc, const char *text)
{
    int32_t line;
    doc->at = text;
    for (line = 1; line == 1 || *doc->at; ++line) {
        if (!tl_read_line(doc) || (*doc->at && *doc->at != '\n')) return line;
        if (*doc->at) ++doc->at;
    }
    return 0;
}

/* ------------------------------------------------------------------- >>layout */
/* Pixels. Widths of text are what the widest of the usual fonts needs: nobody knows which one is there. */
enum {
    TL_MARGIN = 20,
    TL_BOX = 46,       /* height of work */
    TL_PILL = 24,      /* of a mark */
    TL_PITCH = 92,     /* from lane to lane */
    TL_TITLE_LINE = 24,
    TL_LINE = 19,      /* of a sentence */
    TL_GAP = 8,        /* between the things in a lane */
    TL_BADGE = 10,     /* radius of the number of a race */
    TL_LEAST_WIDTH = 720,
    TL_STEP = 12,      /* of time, where nothing needs more room */
    TL_NAME_SIZE = 13,
    TL_SMALL_SIZE = 11,
    TL_TITLE_SIZE = 16,
    TL_MOST_CELLS = 10000 /* of a text; so that nothing overflows */
};

/* What is taken in the space under a lane. */
typedef struct tl_slot {
    int32_t lane, x0, x1;
} tl_slot;

typedef struct tl_layout {
    tl_document *doc;
    int32_t *times, *x; /* ascending, and where they are */
    tl_slot *slots;
    int32_t time_count, slot_count;
    int32_t left, top, width, height, axis;
} tl_layout;

/* East Asian characters and pictures are twice as wide as others. */
static int32_t tl_cells(const char *text)
{
    int32_t cells = 0;
    uint32_t point;
    while (*text && cells < TL_MOST_CELLS) {
        text += tl_character(text, &point);
        cells += point >= 0x1100 ? 2 : 1;
    }
    return cells;
}

static int32_t tl_mono_width(const char *text, int32_t size)
{
    return tl_cells(text) * size * 62 / 100 + 1;
}

/* Of a character of a font that is not monospaced, in hundredths of its size */
static int32_t tl_sans_point(uint32_t point)
{
    if (point > 127) return point >= 0x1100 ? 200 : 100;
    if (strchr("mMW@%", (int)point)) return 100;
    if ((point >= 'A' && point <= 'Z') || strchr("w&#+<=>~_", (int)point)) return 84;
    return strchr(" ijl.,;:'|!()[]/\\", (int)point) ? 45 : 65;
}

static int32_t tl_bold_width(const char *text, int32_t size)
{
    int32_t width = 0;
    uint32_t point;
    while (*text && width < 100 * TL_MOST_CELLS) {
        text += tl_character(text, &point);
        width += tl_sans_point(point);
    }
    return width * size / 88;
}

/* Where a line of at most `width` hundredths of its size ends: at a blank if there is one. */
static const char *tl_line_end(const char *text, int32_t width)
{
    const char *at = text, *blank = NULL;
    int32_t used = 0;
    uint32_t point;
    while (*at) {
        const size_t length = tl_character(at, &point);
        if (point == ' ' && at > text) blank = at;
        used += tl_sans_point(point);
        if (used > width && at > text) return blank ? blank : at;
        at += length;
    }
    return at;
}

static const char *tl_next_line(const char *end)
{
    while (*end == ' ') ++end;
    return end;
}

static int32_t tl_line_count(const char *text, int32_t width)
{
    int32_t count = 0;
    for (; *text; text = tl_next_line(tl_line_end(text, width))) ++count;
    return count;
}

static int32_t tl_sentence_width(const tl_layout *layout)
{
    return (layout->width - 2 * TL_MARGIN - 3 * TL_BADGE) * 100 / TL_NAME_SIZE;
}

static int32_t tl_title_width(const tl_layout *layout)
{
    return (layout->width - 2 * TL_MARGIN) * 88 / TL_TITLE_SIZE;
}

static int tl_compare_numbers(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int tl_compare_ends(const void *a, const void *b)
{
    return tl_compare_numbers(&(*(const tl_item *const *)a)->end, &(*(const tl_item *const *)b)->end);
}

static int32_t tl_x(const tl_layout *layout, int32_t time)
{
    int32_t low = 0, high = layout->time_count - 1;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (layout->times[middle] < time) low = middle + 1;
        else high = middle;
    }
    return layout->x[low];
}

static int32_t tl_item_width(const tl_item *item)
{
    const int32_t name = tl_mono_width(item->name, item->form == TL_MARK ? TL_SMALL_SIZE : TL_NAME_SIZE);
    const int32_t detail = item->detail ? tl_mono_width(item->detail, TL_SMALL_SIZE) : 0;
    return (name > detail ? name : detail) + (item->form == TL_MARK ? 18 : 24);
}

static void tl_layout_times(tl_layout *layout)
{
    const tl_document *doc = layout->doc;
    int32_t i, used = 0, count = 0;
    layout->times = (int32_t *)tl_memory(NULL, (size_t)(2 * doc->item_count + 1) * sizeof *layout->times);
    layout->x = (int32_t *)tl_memory(NULL, (size_t)(2 * doc->item_count + 1) * sizeof *layout->x);
    layout->times[count++] = 0;
    for (i = 0; i < doc->item_count; ++i) {
        layout->times[count++] = doc->items[i].start;
        layout->times[count++] = doc->items[i].end;
    }
    qsort(layout->times, (size_t)count, sizeof *layout->times, tl_compare_numbers);
    for (i = 0; i < count; ++i)
        if (!used || layout->times[i] != layout->times[used - 1]) layout->times[used++] = layout->times[i];
    layout->time_count = used;
}

/* A time stands as far right as the things that end then need, and a little after the time before. */
static void tl_layout_x(tl_layout *layout)
{
    const tl_document *doc = layout->doc;
    const tl_item **ends = (const tl_item **)tl_memory(NULL, (size_t)doc->item_count * sizeof *ends);
    int32_t i, next = 0;
    for (i = 0; i < doc->item_count; ++i) ends[i] = &doc->items[i];
    if (doc->item_count) qsort(ends, (size_t)doc->item_count, sizeof *ends, tl_compare_ends);
    layout->x[0] = layout->left;
    for (i = 1; i < layout->time_count; ++i) {
        const int32_t step = layout->times[i] - layout->times[i - 1];
        layout->x[i] = layout->x[i - 1] + TL_STEP * (step < TL_WORK ? step : TL_WORK);
        for (; next < doc->item_count && ends[next]->end == layout->times[i]; ++next) {
            const int32_t least = tl_x(layout, ends[next]->start) + tl_item_width(ends[next]) + TL_GAP;
            if (least > layout->x[i]) layout->x[i] = least;
        }
    }
    free(ends);
}

static int32_t tl_lane_y(const tl_layout *layout, int32_t lane)
{
    return layout->top + lane * TL_PITCH + TL_BOX / 2;
}

static void tl_layout_items(tl_layout *layout)
{
    int32_t i;
    for (i = 0; i < layout->doc->item_count; ++i) {
        tl_item *item = &layout->doc->items[i];
        const int32_t half = (item->form == TL_MARK ? TL_PILL : TL_BOX) / 2;
        item->x0 = tl_x(layout, item->start) + TL_GAP / 2;
        item->x1 = tl_x(layout, item->end) - TL_GAP / 2;
        if (item->form == TL_MARK) item->x1 = item->x0 + tl_item_width(item);
        item->y0 = tl_lane_y(layout, item->lane) - half;
        item->y1 = tl_lane_y(layout, item->lane) + half;
    }
}

/* A place for something `width` wide under a lane: `x`, or as near on its right as there is one. */
static int32_t tl_take_slot(tl_layout *layout, int32_t lane, int32_t x, int32_t width)
{
    tl_slot *slot;
    int32_t i;
    for (i = 0; i < layout->slot_count; ++i) {
        slot = &layout->slots[i];
        if (slot->lane != lane || slot->x1 <= x || slot->x0 >= x + width) continue;
        x = slot->x1;
        i = -1;
    }
    layout->slots = (tl_slot *)tl_grow(layout->slots, layout->slot_count, sizeof *layout->slots);
    slot = &layout->slots[layout->slot_count++];
    slot->lane = lane;
    slot->x0 = x;
    slot->x1 = x + width;
    if (slot->x1 + TL_MARGIN > layout->width) layout->width = slot->x1 + TL_MARGIN;
    return x;
}

/* Where a line between two boxes begins and ends: straight up and down if they stand above one another. */
static void tl_join(const tl_item *upper, const tl_item *lower, int32_t *x)
{
    const int32_t left = upper->x0 > lower->x0 ? upper->x0 : lower->x0;
    const int32_t right = upper->x1 < lower->x1 ? upper->x1 : lower->x1;
    const int before = upper->x1 < lower->x0;
    x[0] = x[1] = (left + right) / 2;
    if (left < right) return;
    x[0] = before ? upper->x1 - TL_PILL / 2 : upper->x0 + TL_PILL / 2;
    x[1] = before ? lower->x0 + TL_PILL / 2 : lower->x1 - TL_PILL / 2;
}

/* The ends of a race, the upper first. */
static void tl_race_ends(const tl_layout *layout, const tl_link *race, const tl_item **ends)
{
    const tl_item *from = &layout->doc->items[race->from], *to = &layout->doc->items[race->to];
    ends[0] = from->lane < to->lane ? from : to;
    ends[1] = from->lane < to->lane ? to : from;
}

static void tl_layout_races(tl_layout *layout)
{
    int32_t i;
    for (i = 0; i < layout->doc->race_count; ++i) {
        tl_link *race = &layout->doc->races[i];
        const tl_item *ends[2];
        int32_t x[2], y0, y1;
        tl_race_ends(layout, race, ends);
        tl_join(ends[0], ends[1], x);
        y0 = ends[0]->y1;
        y1 = ends[1]->y0;
        race->y = tl_lane_y(layout, ends[0]->lane) + TL_PITCH / 2;
        race->x = x[0] + (int32_t)((int64_t)(x[1] - x[0]) * (race->y - y0) / (y1 - y0)) - TL_BADGE;
        race->x = tl_take_slot(layout, ends[0]->lane, race->x, 2 * TL_BADGE + 4) + TL_BADGE;
    }
}

/* Where an arrow leaves or meets an item. */
static int32_t tl_arrow_x(const tl_item *item, int leaves)
{
    if (item->form == TL_MARK) return (item->x0 + item->x1) / 2;
    return leaves ? item->x1 - TL_PILL / 2 : item->x0 + TL_PILL / 2;
}

/* A label says what the name of what waited does not. */
static void tl_layout_arrows(tl_layout *layout)
{
    int32_t i;
    for (i = 0; i < layout->doc->arrow_count; ++i) {
        tl_link *arrow = &layout->doc->arrows[i];
        const tl_item *from = &layout->doc->items[arrow->from], *to = &layout->doc->items[arrow->to];
        const int32_t gap = from->lane < to->lane ? to->lane - 1 : to->lane;
        const int32_t width = tl_mono_width(arrow->label, TL_SMALL_SIZE) + 8;
        if (strstr(to->name, arrow->label)) continue;
        arrow->y = tl_lane_y(layout, gap) + TL_PITCH / 2 + 4;
        arrow->x = tl_take_slot(layout, gap, tl_arrow_x(to, 0) + 8, width);
    }
}

static void tl_layout_heads(tl_layout *layout)
{
    int32_t i;
    for (i = 0; i < layout->doc->lane_count; ++i) {
        const tl_lane *lane = &layout->doc->lanes[i];
        const int32_t label = tl_bold_width(lane->label, TL_NAME_SIZE);
        const int32_t name = tl_mono_width(lane->name, TL_SMALL_SIZE);
        if (label > layout->left) layout->left = label;
        if (name > layout->left) layout->left = name;
    }
    layout->left += TL_MARGIN + 14;
}

static void tl_layout_make(tl_layout *layout, tl_document *doc)
{
    int32_t i;
    memset(layout, 0, sizeof *layout);
    layout->doc = doc;
    tl_layout_heads(layout);
    tl_layout_times(layout);
    tl_layout_x(layout);
    layout->width = layout->x[layout->time_count - 1] + TL_GAP + TL_MARGIN;
    if (layout->width < TL_LEAST_WIDTH) layout->width = TL_LEAST_WIDTH;
    layout->top = TL_MARGIN + 14 + tl_line_count(doc->title, tl_title_width(layout)) * TL_TITLE_LINE;
    tl_layout_items(layout);
    tl_layout_races(layout);
    tl_layout_arrows(layout);
    layout->axis = layout->top + (doc->lane_count ? (doc->lane_count - 1) * TL_PITCH + TL_BOX : 0) + 20;
    layout->height = layout->axis + 22;
    for (i = 0; i < doc->race_count; ++i)
        layout->height += tl_line_count(doc->races[i].sentence, tl_sentence_width(layout)) * TL_LINE + 6;
    if (doc->race_count) layout->height += 12;
}

static void tl_layout_free(tl_layout *layout)
{
    free(layout->times);
    free(layout->x);
    free(layout->slots);
}

/* ------------------------------------------------------------------ >>drawing */
/* A class, what it has always, and what on a light and on a dark page. */
typedef struct tl_rule {
    const char *name, *always, *light, *dark;
} tl_rule;

#define TL_SANS "font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
#define TL_MONO "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"

static const tl_rule tl_rules[] = {
    {"page", "", "fill:#ffffff;stroke:#d1d9e0", "fill:#0d1117;stroke:#3d444d"},
    {"title", TL_SANS "font-size:16px;font-weight:600", "fill:#1f2328", "fill:#f0f6fc"},
    {"label", TL_SANS "font-size:13px;font-weight:600", "fill:#1f2328", "fill:#f0f6fc"},
    {"small", TL_MONO "font-size:11px", "fill:#59636e", "fill:#9198a1"},
    {"lane", "stroke-width:2", "stroke:#d1d9e0", "stroke:#3d444d"},
    {"axis", "stroke-width:1;fill:none", "stroke:#59636e", "stroke:#9198a1"},
    {"work", "stroke-width:1.5", "fill:#ddf4ff;stroke:#0969da", "fill:#0f2d52;stroke:#4493f8"},
    {"name", TL_MONO "font-size:13px;font-weight:600", "fill:#0a3069", "fill:#cae8ff"},
    {"detail", TL_MONO "font-size:11px", "fill:#0a3069", "fill:#cae8ff"},
    {"lost", "stroke-dasharray:5 4", "", ""},
    {"order", "stroke-width:1.5", "fill:#fbefff;stroke:#8250df", "fill:#2b1a4a;stroke:#ab7df8"},
    {"ordername", TL_MONO "font-size:11px", "fill:#512a97", "fill:#e2c5ff"},
    {"host", "stroke-width:1.5", "fill:#f6f8fa;stroke:#59636e", "fill:#212830;stroke:#9198a1"},
    {"hostname", TL_MONO "font-size:11px", "fill:#1f2328", "fill:#f0f6fc"},
    {"lostname", TL_MONO "font-size:13px;font-weight:600", "fill:#1f2328", "fill:#f0f6fc"},
    {"memory", "stroke-width:1.5", "fill:#fff8c5;stroke:#9a6700", "fill:#3b2300;stroke:#d29922"},
    {"memoryname", TL_MONO "font-size:11px", "fill:#633c01", "fill:#f8e3a1"},
    {"arrow", "stroke-width:2;fill:none", "stroke:#8250df", "stroke:#ab7df8"},
    {"implicit", "stroke-width:2;stroke-dasharray:3 4;fill:none", "stroke:#8250df", "stroke:#ab7df8"},
    {"head", "stroke:none", "fill:#8250df", "fill:#ab7df8"},
    {"raced", "stroke-width:2.5", "fill:#ffebe9;stroke:#cf222e", "fill:#4a1116;stroke:#ff7b72"},
    {"hatch", "stroke-width:2.5;stroke-opacity:.16", "stroke:#cf222e", "stroke:#ff7b72"},
    {"racedname", TL_MONO "font-size:13px;font-weight:600", "fill:#82071e", "fill:#ffdcd7"},
    {"raceddetail", TL_MONO "font-size:11px", "fill:#82071e", "fill:#ffdcd7"},
    {"race", "stroke-width:2.5;stroke-dasharray:7 4;fill:none", "stroke:#cf222e", "stroke:#ff7b72"},
    {"badge", "stroke-width:2", "fill:#cf222e;stroke:#ffffff", "fill:#ff7b72;stroke:#0d1117"},
    {"badgename", TL_SANS "font-size:12px;font-weight:700", "fill:#ffffff", "fill:#0d1117"},
    {"sentence", TL_SANS "font-size:13px", "fill:#a40e26", "fill:#ffa198"},
};
enum { TL_RULES = (int)(sizeof tl_rules / sizeof *tl_rules) };

static void tl_style(tl_text *out)
{
    int32_t dark, i;
    tl_put(out, "<style>\n");
    for (dark = 0; dark < 2; ++dark) {
        if (dark) tl_put(out, "@media (prefers-color-scheme: dark) {\n");
        for (i = 0; i < TL_RULES; ++i) {
            tl_put(out, ".");
            tl_put(out, tl_rules[i].name);
            tl_put(out, " {");
            tl_put(out, dark ? "" : tl_rules[i].always);
            tl_put(out, dark || !tl_rules[i].always[0] ? "" : ";");
            tl_put(out, dark ? tl_rules[i].dark : tl_rules[i].light);
            tl_put(out, "}\n");
        }
    }
    tl_put(out, "}\n</style>\n");
}

static void tl_put_escaped(tl_text *out, const char *text, size_t length)
{
    for (; length; --length, ++text) {
        if (*text == '&') tl_put(out, "&amp;");
        else if (*text == '<') tl_put(out, "&lt;");
        else if (*text == '>') tl_put(out, "&gt;");
        else if (*text == '"') tl_put(out, "&quot;");
        else tl_put_bytes(out, text, 1);
    }
}

/* A pattern: '$' is the next number, '%' the text, escaped. */
static void tl_draw(tl_text *out, const char *pattern, const int32_t *numbers, const char *text,
                    size_t length)
{
    for (; *pattern; ++pattern) {
        if (*pattern == '$') tl_put_number(out, *numbers++);
        else if (*pattern == '%') tl_put_escaped(out, text, length);
        else tl_put_bytes(out, pattern, 1);
    }
}

static void tl_draw_text(tl_text *out, const char *name, const char *anchor, int32_t x, int32_t y,
                         const char *text, size_t length)
{
    const int32_t at[2] = {x, y};
    tl_put(out, "<text class=\"");
    tl_put(out, name);
    tl_put(out, "\" text-anchor=\"");
    tl_put(out, anchor);
    tl_draw(out, "\" x=\"$\" y=\"$\" xml:space=\"preserve\">%</text>\n", at, text, length);
}

/* Lines of a text, the first with its baseline at `y`; the number of lines. */
static int32_t tl_draw_lines(tl_text *out, const char *name, int32_t x, int32_t y, int32_t pitch,
                             const char *text, int32_t width)
{
    int32_t count = 0;
    while (*text) {
        const char *end = tl_line_end(text, width);
        tl_draw_text(out, name, "start", x, y + pitch * count++, text, (size_t)(end - text));
        text = tl_next_line(end);
    }
    return count;
}

/* For those who do not see it */
static void tl_draw_description(tl_text *out, const tl_document *doc)
{
    int32_t counts[3], i;
    counts[0] = doc->lane_count;
    counts[1] = doc->item_count;
    counts[2] = doc->race_count;
    tl_draw(out, "<title id=\"cai-title\">%</title>\n", NULL, doc->title, strlen(doc->title));
    tl_draw(out, "<desc id=\"cai-desc\">A timeline. Lanes: $, operations: $, races: $.", counts, NULL, 0);
    for (i = 0; i < doc->race_count; ++i)
        tl_draw(out, " %.", NULL, doc->races[i].sentence, strlen(doc->races[i].sentence));
    tl_put(out, "</desc>\n");
}

static void tl_draw_head(tl_text *out, const tl_layout *layout)
{
    int32_t box[4];
    box[0] = box[2] = layout->width;
    box[1] = box[3] = layout->height;
    tl_put(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" ");
    tl_draw(out, "width=\"$\" height=\"$\" viewBox=\"0 0 $ $\" ", box, NULL, 0);
    tl_put(out, "role=\"img\" aria-labelledby=\"cai-title cai-desc\">\n");
    tl_draw_description(out, layout->doc);
    tl_style(out);
    tl_put(out, "<defs>\n<marker id=\"cai-head\" markerUnits=\"userSpaceOnUse\" markerWidth=\"10\" "
                "markerHeight=\"10\" refX=\"8\" refY=\"5\" orient=\"auto\">"
                "<path class=\"head\" d=\"M0 0 L10 5 L0 10 z\"/></marker>\n"
                "<marker id=\"cai-axis\" markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\" "
                "refX=\"7\" refY=\"4\" orient=\"auto\"><path class=\"axis\" d=\"M1 1 L7 4 L1 7\"/></marker>\n"
                "<pattern id=\"cai-hatch\" width=\"9\" height=\"9\" patternUnits=\"userSpaceOnUse\" "
                "patternTransform=\"rotate(45)\"><path class=\"hatch\" d=\"M1 0 V9\"/></pattern>\n</defs>\n");
    --box[0];
    --box[1];
    tl_put(out, "<rect class=\"page\" x=\"0.5\" y=\"0.5\"");
    tl_draw(out, " width=\"$\" height=\"$\" rx=\"8\"/>\n", box, NULL, 0);
    (void)tl_draw_lines(out, "title", TL_MARGIN, TL_MARGIN + 14, TL_TITLE_LINE, layout->doc->title,
                        tl_title_width(layout));
}

static void tl_draw_lane(tl_text *out, const tl_layout *layout, int32_t lane)
{
    const tl_lane *l = &layout->doc->lanes[lane];
    const int named = strcmp(l->name, l->label) != 0;
    const int32_t y = tl_lane_y(layout, lane);
    int32_t line[4];
    line[0] = layout->left;
    line[1] = line[3] = y;
    line[2] = layout->width - TL_MARGIN;
    tl_draw(out, "<path class=\"lane\" d=\"M$ $ L$ $\"/>\n", line, NULL, 0);
    tl_draw_text(out, "label", "start", TL_MARGIN, named ? y - 2 : y + 4, l->label, strlen(l->label));
    if (named) tl_draw_text(out, "small", "start", TL_MARGIN, y + 13, l->name, strlen(l->name));
}

static void tl_draw_arrow(tl_text *out, const tl_layout *layout, const tl_link *arrow)
{
    const tl_item *from = &layout->doc->items[arrow->from], *to = &layout->doc->items[arrow->to];
    const int down = from->lane < to->lane;
    int32_t path[8];
    path[0] = path[2] = tl_arrow_x(from, 1);
    path[4] = path[6] = tl_arrow_x(to, 0);
    path[1] = down ? from->y1 : from->y0;
    path[7] = down ? to->y0 - 1 : to->y1 + 1;
    path[3] = path[5] = (path[1] + path[7]) / 2;
    tl_put(out, strcmp(arrow->label, "implicit") ? "<path class=\"arrow\"" : "<path class=\"implicit\"");
    tl_draw(out, " marker-end=\"url(#cai-head)\" d=\"M$ $ C$ $ $ $ $ $\"/>\n", path, NULL, 0);
}

static void tl_draw_race_line(tl_text *out, const tl_layout *layout, const tl_link *race)
{
    const tl_item *ends[2];
    int32_t x[2], line[4];
    tl_race_ends(layout, race, ends);
    tl_join(ends[0], ends[1], x);
    line[0] = x[0];
    line[1] = ends[0]->y1;
    line[2] = x[1];
    line[3] = ends[1]->y0;
    tl_draw(out, "<path class=\"race\" d=\"M$ $ L$ $\"/>\n", line, NULL, 0);
}

static void tl_draw_box(tl_text *out, const char *name, const tl_item *item, int32_t radius)
{
    int32_t box[5];
    box[0] = item->x0;
    box[1] = item->y0;
    box[2] = item->x1 - item->x0;
    box[3] = item->y1 - item->y0;
    box[4] = radius;
    tl_put(out, "<rect ");
    tl_put(out, name);
    tl_draw(out, " x=\"$\" y=\"$\" width=\"$\" height=\"$\" rx=\"$\"/>\n", box, NULL, 0);
}

static void tl_draw_work(tl_text *out, const tl_item *item)
{
    static const char *const boxes[4] = {"class=\"work\"", "class=\"raced\"", "class=\"host lost\"",
                                         "class=\"raced lost\""};
    static const char *const names[3] = {"name", "racedname", "lostname"};
    static const char *const details[3] = {"detail", "raceddetail", "hostname"};
    const int32_t x = (item->x0 + item->x1) / 2, y = (item->y0 + item->y1) / 2;
    const int look = item->raced ? 1 : item->form == TL_LOST ? 2 : 0;
    tl_draw_box(out, boxes[(item->form == TL_LOST ? 2 : 0) + (item->raced ? 1 : 0)], item, 7);
    if (item->raced) tl_draw_box(out, "fill=\"url(#cai-hatch)\"", item, 7);
    tl_draw_text(out, names[look], "middle", x, item->detail[0] ? y - 3 : y + 5, item->name,
                 strlen(item->name));
    if (item->detail[0])
        tl_draw_text(out, details[look], "middle", x, y + 14, item->detail, strlen(item->detail));
}

static void tl_draw_mark(tl_text *out, const tl_item *item)
{
    static const char *const boxes[3] = {"class=\"host\"", "class=\"order\"", "class=\"memory\""};
    static const char *const names[3] = {"hostname", "ordername", "memoryname"};
    const int order = !strcmp(item->kind, "record") || !strcmp(item->kind, "wait");
    const int memory = !strcmp(item->kind, "alloc") || !strcmp(item->kind, "free");
    const int look = order ? 1 : memory ? 2 : 0;
    tl_draw_box(out, item->raced ? "class=\"raced\"" : boxes[look], item, TL_PILL / 2);
    if (item->raced) tl_draw_box(out, "fill=\"url(#cai-hatch)\"", item, TL_PILL / 2);
    tl_draw_text(out, item->raced ? "raceddetail" : names[look], "middle", (item->x0 + item->x1) / 2,
                 (item->y0 + item->y1) / 2 + 4, item->name, strlen(item->name));
}

/* The number of a race, which stands on its line and before its sentence. */
static void tl_draw_badge(tl_text *out, int32_t number, int32_t x, int32_t y)
{
    tl_text digits = {NULL, 0, 0};
    int32_t at[3];
    at[0] = x;
    at[1] = y;
    at[2] = TL_BADGE;
    tl_put_number(&digits, number);
    tl_draw(out, "<circle class=\"badge\" cx=\"$\" cy=\"$\" r=\"$\"/>\n", at, NULL, 0);
    tl_draw_text(out, "badgename", "middle", x, y + 4, digits.data, digits.length);
    free(digits.data);
}

static void tl_draw_sentences(tl_text *out, const tl_layout *layout)
{
    int32_t y = layout->axis + 36, i;
    for (i = 0; i < layout->doc->race_count; ++i) {
        tl_draw_badge(out, i + 1, TL_MARGIN + TL_BADGE, y - 4);
        y += TL_LINE * tl_draw_lines(out, "sentence", TL_MARGIN + 3 * TL_BADGE, y, TL_LINE,
                                     layout->doc->races[i].sentence, tl_sentence_width(layout));
        y += 6;
    }
}

static void tl_draw_axis(tl_text *out, const tl_layout *layout)
{
    int32_t line[4];
    line[0] = layout->left + tl_mono_width("time", TL_SMALL_SIZE) + 8;
    line[1] = line[3] = layout->axis;
    line[2] = layout->width - TL_MARGIN;
    tl_draw_text(out, "small", "start", layout->left, layout->axis + 4, "time", 4);
    tl_draw(out, "<path class=\"axis\" marker-end=\"url(#cai-axis)\" d=\"M$ $ L$ $\"/>\n", line, NULL, 0);
}

/* Lines first, so that boxes cover them, and no line crosses a text. */
static void tl_draw_all(tl_text *out, const tl_layout *layout)
{
    const tl_document *doc = layout->doc;
    int32_t i;
    tl_draw_head(out, layout);
    tl_draw_axis(out, layout);
    for (i = 0; i < doc->lane_count; ++i) tl_draw_lane(out, layout, i);
    for (i = 0; i < doc->arrow_count; ++i) tl_draw_arrow(out, layout, &doc->arrows[i]);
    for (i = 0; i < doc->race_count; ++i) tl_draw_race_line(out, layout, &doc->races[i]);
    for (i = 0; i < doc->item_count; ++i) {
        if (doc->items[i].form == TL_MARK) tl_draw_mark(out, &doc->items[i]);
        else tl_draw_work(out, &doc->items[i]);
    }
    for (i = 0; i < doc->arrow_count; ++i)
        if (doc->arrows[i].x)
            tl_draw_text(out, "small", "start", doc->arrows[i].x, doc->arrows[i].y, doc->arrows[i].label,
                         strlen(doc->arrows[i].label));
    for (i = 0; i < doc->race_count; ++i) tl_draw_badge(out, i + 1, doc->races[i].x, doc->races[i].y);
    tl_draw_sentences(out, layout);
    tl_put(out, "</svg>\n");
}

char *cai_timeline_svg(const char *text, int32_t *bad_line)
{
    tl_document doc;
    tl_layout layout;
    tl_text out = {NULL, 0, 0};
    int32_t line;
    memset(&doc, 0, sizeof doc);
    line = tl_read(&doc, text);
    if (bad_line) *bad_line = line;
    if (!line) {
        tl_layout_make(&layout, &doc);
        tl_draw_all(&out, &layout);
        tl_layout_free(&layout);
    }
    tl_document_free(&doc);
    return out.data;
}
