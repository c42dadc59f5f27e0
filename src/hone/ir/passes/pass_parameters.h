// ir/passes/pass_parameters.h - the properties of a machine that passes depend on. They are a part
// of a target's description (target/target.h).
#pragma once

#include "hone/ir/passes/partition_loops.h"
#include "hone/ir/passes/prefetch_blocks.h"
#include "hone/ir/passes/prefetch_next.h"
#include "hone/ir/passes/prefetch_rows.h"
#include "hone/ir/passes/roll_loops.h"

namespace hone::ir {

struct PassParameters {
  PrefetchOptions prefetch_blocks;
  PrefetchNextOptions prefetch_next;
  PrefetchRowsOptions prefetch_rows;
  PartitionOptions partition_loops;
  RollOptions roll_loops;
};

}  // namespace hone::ir
