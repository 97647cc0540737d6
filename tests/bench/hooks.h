/* hooks.h - hooks that do nothing, in an object of their own: what a manager itself costs. */
#ifndef CAI_BENCH_HOOKS_H
#define CAI_BENCH_HOOKS_H

#include "cai_emm.h"

void no_op_hooks(cai_emm_hooks *hooks);

#endif
