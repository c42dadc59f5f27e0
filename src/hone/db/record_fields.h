// db/record_fields.h - the fields of a record with their names in files, as one list for all
// readers and writers. The id is left out, as it belongs to a store.
#pragma once

#include "hone/trial/record.h"

namespace hone::db {

// Calls visit(name, field) for every field that each record has.
template <typename R, typename Visitor>
void for_each_field(R& r, const Visitor& visit) {
  visit("task", r.task);
  visit("kernel_class", r.kernel_class);
  visit("task_text", r.task_text);
  visit("device", r.device);
  visit("threads", r.threads);
  visit("version", r.version);
  visit("algorithm", r.algorithm);
  visit("steps", r.steps);
  visit("decisions", r.decisions);
  visit("outcome", r.outcome);
  visit("message", r.message);
  visit("times", r.times);
  visit("centre", r.centre);
  visit("low", r.low);
  visit("high", r.high);
  visit("verified", r.verified);
  visit("seed", r.seed);
  visit("unix_time", r.unix_time);
  visit("host_load", r.host_load);
  visit("model", r.model);
  visit("drift", r.drift);
  visit("crowned", r.crowned);
  visit("duel", r.duel);
  visit("others", r.others);
  visit("steal", r.steal);
}
// Files of releases that did not store the accuracy lack this field; it follows from the steps.
inline constexpr const char* kAccuracyField = "accuracy";
// Only records of a part of their task have this field.
inline constexpr const char* kPartField = "part";
// Calls visit(name, field) for the bounds. A record has all of them or none.
template <typename Bounds, typename Visitor>
void for_each_bound(Bounds& bounds, const Visitor& visit) {
  visit("memory_bound", bounds.scores.memory);
  visit("core_bound", bounds.scores.core);
  visit("bounds_source", bounds.source);
}
// The figures of code, as for_each_figure() visits them. A record has all of them or none; a
// row of a table without them has zeros, which no code has in this one.
inline constexpr const char* kFiguresField = "registers";

}  // namespace hone::db
