/* place_rules.h - what cai_place must answer, by brute force: for test_place.c and place_model.c
 * SPDX-License-Identifier: MIT
 *
 * Include after cai_place.h, cai_test.h and cai_test_help.h. */
#ifndef PLACE_RULES_H_INCLUDED
#define PLACE_RULES_H_INCLUDED

enum { MOST = 4 /* inputs of a call */ };

/* One call of cai_place, and what it says. */
typedef struct call {
    const cai_array *inputs[MOST];
    const char *const *names;
    int32_t count;
    const cai_array *out;
    int32_t policy;
    uint32_t flags;
    uint64_t stream;
} call;

/* What is to come out: the placement, or what may be said of the operand that offends. */
typedef struct verdict {
    cai_placement at;
    uint32_t statuses; /* bit by bit; 0: CAI_OK */
    int32_t index;
} verdict;

/* What has a say: no scalar, nothing empty. */
static int rule_counts(const cai_array *x)
{
    return x && x->size && !(x->memory == CAI_MEMORY_HOST && x->ndim == 0);
}

/* Only one device can use it. cai_locate stores that of plain host memory, if there is one. */
static int rule_bound(const cai_array *x)
{
    return x->memory == CAI_MEMORY_DEVICE || (x->memory == CAI_MEMORY_HOST && x->device >= 0);
}

/* The array or the mask that says a stream, the first (0) or the second (1); NULL: none. */
static const cai_array *rule_speaker(const cai_array *x, int32_t which)
{
    const cai_array *found[2] = {NULL, NULL};
    int32_t count = 0;
    if (x->stream && (x->sync == CAI_SYNC_STREAM || x->sync == CAI_SYNC_EVENT)) found[count++] = x;
    x = x->mask;
    if (x && x->stream && (x->sync == CAI_SYNC_STREAM || x->sync == CAI_SYNC_EVENT)) found[count++] = x;
    return found[which];
}

/* Handles are the same stream by number, default streams are so on one device, 2 on one host thread only. */
static int rule_same_stream(const cai_array *x, const cai_array *y)
{
    if (x->stream != y->stream) return 0;
    if (x->stream <= 2 && x->device != y->device) return 0;
    return x->stream != 2 || x->thread == y->thread;
}

/* The operand that decides the stream: the first that has one. *item: which; -1: none. */
static const cai_array *rule_decider(const call *c, int32_t *item)
{
    int32_t bound; /* to a device, which counts first if an exchange joins the rest */
    for (bound = c->policy == CAI_PLACE_SAME_DEVICE; bound >= 0; bound--) {
        for (*item = 0; *item < c->count; ++*item) {
            const cai_array *x = c->inputs[*item];
            if (!rule_counts(x) || (bound && !rule_bound(x))) continue;
            if (rule_speaker(x, 0)) return rule_speaker(x, 0);
        }
    }
    *item = -1;
    return NULL;
}

static uint32_t rule_memory(const call *c, const cai_array *x)
{
    int32_t i;
    if (x->memory < CAI_MEMORY_HOST || x->memory > CAI_MEMORY_DEVICE) return 1u << CAI_ERR_MEMORY;
    if (x->memory != CAI_MEMORY_DEVICE && x->memory != CAI_MEMORY_HOST) return 0;
    if (x->device < 0) return 1u << CAI_ERR_MEMORY;
    for (i = 0; i < c->count && c->inputs[i] != x; i++) {
        const cai_array *before = c->inputs[i];
        if (rule_counts(before) && rule_bound(before) && before->device != x->device)
            return 1u << CAI_ERR_PLACEMENT;
    }
    return 0;
}

static uint32_t rule_stream(const call *c, const cai_array *x)
{
    int32_t item, which;
    const cai_array *decider = rule_decider(c, &item);
    if (c->policy != CAI_PLACE_IDENTICAL) return 0;
    for (which = 0; which < 2; which++) {
        const cai_array *said = rule_speaker(x, which);
        if (said && !(decider ? rule_same_stream(decider, said) : said->stream == c->stream))
            return 1u << CAI_ERR_PLACEMENT;
    }
    return 0;
}

/* Every element at the same place. */
static int rule_in_place(const cai_array *x, const cai_array *y)
{
    static uint64_t xs[HELP_ELEMENTS], ys[HELP_ELEMENTS];
    int32_t i;
    if (x->dtype.itemsize != y->dtype.itemsize || x->ndim != y->ndim) return 0;
    for (i = 0; i < x->ndim; i++)
        if (x->shape[i] != y->shape[i]) return 0;
    if (help_addresses(x, xs) != help_addresses(y, ys)) return 0;
    return memcmp(xs, ys, (size_t)x->size * sizeof xs[0]) == 0;
}

static int rule_shares_bytes(const cai_array *x, const cai_array *y)
{
    static uint64_t xs[HELP_ELEMENTS], ys[HELP_ELEMENTS];
    const int64_t x_count = help_addresses(x, xs), y_count = help_addresses(y, ys);
    const uint64_t x_bytes = (uint64_t)x->dtype.itemsize, y_bytes = (uint64_t)y->dtype.itemsize;
    int64_t i, k;
    for (i = 0; i < x_count; i++)
        for (k = 0; k < y_count; k++)
            if (xs[i] < ys[k] + y_bytes && ys[k] < xs[i] + x_bytes) return 1;
    return 0;
}

static int rule_overlaps_itself(const cai_array *x)
{
    static uint64_t xs[HELP_ELEMENTS];
    const int64_t count = help_addresses(x, xs);
    int64_t i;
    qsort(xs, (size_t)count, sizeof xs[0], help_compare);
    for (i = 1; i < count; i++)
        if (xs[i] - xs[i - 1] < (uint64_t)x->dtype.itemsize) return 1;
    return 0;
}

static uint32_t rule_out(const call *c, verdict *v)
{
    const cai_array *out = c->out;
    uint32_t wrong = 0;
    int32_t i;
    if (out->abi != CAI_ABI || (out->mask && out->mask->abi != CAI_ABI)) return 1u << CAI_ERR_ABI;
    if (!(out->flags & CAI_WRITABLE)) wrong |= 1u << CAI_ERR_EXPECT;
    if (!out->size) return wrong;
    if (rule_overlaps_itself(out)) wrong |= 1u << CAI_ERR_EXPECT;
    for (i = c->count; i-- > 0;) {
        const cai_array *x = c->inputs[i];
        if (x && rule_shares_bytes(x, out) && !rule_in_place(x, out)) v->at.overlap = i;
        if (x && x->mask && rule_shares_bytes(x->mask, out)) v->at.overlap = i;
    }
    if (v->at.overlap >= 0 && !(c->flags & CAI_PLACE_ALLOW_OVERLAP)) wrong |= 1u << CAI_ERR_EXPECT;
    return wrong | rule_memory(c, out) | rule_stream(c, out);
}

/* What follows from inputs that are fine. */
static void rule_settle(const call *c, verdict *v)
{
    const cai_array *decider = rule_decider(c, &v->at.decided);
    int32_t i;
    if (c->policy == CAI_PLACE_INTO) v->at.decided = -1;
    v->at.stream = v->at.decided < 0 ? c->stream : decider->stream;
    for (i = 0; i <= c->count; i++) {
        const cai_array *x = i < c->count ? c->inputs[i] : c->out;
        int32_t memory;
        if (!x || !x->size || (i < c->count && !rule_counts(x))) continue;
        memory = x->memory == CAI_MEMORY_HOST ? (int32_t)CAI_MEMORY_MANAGED : x->memory;
        if (rule_bound(x)) v->at.device = x->device;
        if (i < c->count && memory > v->at.memory) v->at.memory = memory;
    }
}

static verdict rule(const call *c)
{
    verdict v;
    memset(&v, 0, sizeof v);
    v.at.device = CAI_DEVICE_UNKNOWN;
    v.at.decided = v.at.overlap = v.index = -1;
    v.statuses = 1u << CAI_ERR_STREAM;
    if (c->stream == UINT64_MAX || (!c->stream && c->policy == CAI_PLACE_INTO)) return v;
    for (v.index = 0; v.index < c->count; v.index++) {
        const cai_array *x = c->inputs[v.index];
        v.statuses = x && (x->abi != CAI_ABI || (x->mask && x->mask->abi != CAI_ABI)) ? 1u << CAI_ERR_ABI : 0;
        if (!v.statuses && rule_counts(x)) v.statuses = rule_memory(c, x) | rule_stream(c, x);
        if (v.statuses) return v;
    }
    rule_settle(c, &v);
    v.statuses = v.at.stream ? 0 : 1u << CAI_ERR_PLACEMENT;
    if (v.statuses) v.index = -1;
    else if (c->out) v.statuses = rule_out(c, &v);
    return v;
}

#endif
