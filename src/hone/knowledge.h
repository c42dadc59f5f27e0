// knowledge.h - what is known without measuring (internal to the facade): the database, the
// schedules of other tasks in it, and those that come with Hone.
#pragma once

#include <memory>

#include "hone/db/store.h"
#include "hone/model_tasks.h"
#include "hone/search/transfer.h"

namespace hone {

// A transferred schedule was the fastest of many that were measured; the best predicted is the
// lowest of thousands of predictions, hence the one about which the model errs most in its favour.
// So the former is taken if it looks slower by no more than this factor.
inline constexpr double kTransferTrust = 1.10;

struct Knowledge {
  db::Store* store = nullptr;  // may be null
  search::TransferPool pool;   // of other tasks; the shipped records may be of the same ones, too
};

// Null if there is none to read from.
[[nodiscard]] Result<std::unique_ptr<db::Store>> open_for_reading(const CompileOptions& options);
// The store (may be null) and, unless no database is to be used, the pool.
[[nodiscard]] Result<Knowledge> learn(const ModelTasks& model, db::Store* store,
                                      const CompileOptions& options);
// The fastest of a database (may be null; left out if nothing may be transferred) and the shipped
// records, without what is excluded.
[[nodiscard]] Result<search::TransferPool> make_pool(const ModelTasks& model, db::Store* store,
                                                     const CompileOptions& options);

// The record of exactly this task on this device, if its schedule still applies; else null.
[[nodiscard]] Result<std::optional<db::Record>> exact_record(const ModelTasks& model, size_t group,
                                                             const Knowledge& knowledge,
                                                             const CompileOptions& options);

// Per group: the schedule of its own record, else that of another task if it is predicted to be at
// least about as fast as the best predicted one, else the best predicted. Fills in the summaries.
// With require_tuned, a group without a record of its own is an error.
[[nodiscard]] Result<std::vector<schedule::Steps>> known_schedules(ModelTasks& model,
                                                                   const Knowledge& knowledge,
                                                                   const CompileOptions& options,
                                                                   ThreadPool& pool);

}  // namespace hone
