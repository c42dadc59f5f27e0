// session/session.h - what a job owns: the device, the cost models, the store, the records that
// come with Hone, the threads, and the tasks and kernels that it has made so far. A command opens
// one session from its options and hands it on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/thread_pool.h"
#include "hone/cost/cost_model.h"
#include "hone/db/store.h"
#include "hone/machine/machine.h"
#include "hone/session/compile_options.h"
#include "hone/session/kernel_table.h"
#include "hone/session/task.h"
#include "hone/trial/record.h"
#include "hone/trial/roofline.h"

namespace hone {

using CostModelPtr = std::shared_ptr<cost::CostModel>;

// What a session needs besides the options of a model.
struct SessionOptions {
  // The store of CompileOptions::db: kRead opens it if there is one, kWrite makes it. None is
  // opened without CompileOptions::use_db.
  enum class Store : uint8_t { kNone, kRead, kWrite } store = Store::kRead;
  // The cost model that guides a search; empty: CompileOptions::cost.
  std::string guide;
  std::string adapt = "none";  // how a net that guides learns (neural/net_adaptation.h)
  CostModelPtr cost;           // instead of the one that CompileOptions::cost names
  db::Store* opened =
      nullptr;  // instead of the one that CompileOptions::db names; it outlives the session
};

class Session {
 public:
  // An error if a name among the options stands for nothing or the store cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const CompileOptions& options,
                                                             const SessionOptions& more = {});

  // The machine that measures; code is for target(), which it need not run.
  [[nodiscard]] const machine::Machine& machine() const { return machine_; }
  [[nodiscard]] const target::Target& target() const { return target_; }
  [[nodiscard]] const std::string& device() const { return device_; }  // target::device_key
  [[nodiscard]] int threads() const { return threads_; }               // that libraries run on
  [[nodiscard]] trial::Accuracy accuracy() const { return accuracy_; }
  [[nodiscard]] const CostModelPtr& cost() const { return cost_; }
  [[nodiscard]] const CostModelPtr& guide() const { return guide_; }  // often the same object
  [[nodiscard]] db::Store* store() const { return store_; }           // null: there is none
  [[nodiscard]] ThreadPool& pool() { return pool_; }  // all cores that this process may use
  [[nodiscard]] TaskTable& tasks() { return tasks_; }
  [[nodiscard]] KernelTable& kernels() { return kernels_; }
  // The machine's limits as `hone devices --measure` or a tune found them, if the store has them.
  // They are read when they are first asked for; those that cannot be read are none.
  [[nodiscard]] const std::optional<trial::Roofline>& roofline();
  // The records that come with Hone for this device, of any task; none if they are not to be used.
  // They are read when they are first asked for; a broken file is an error.
  [[nodiscard]] Result<const std::vector<trial::Record>*> shipped();

 private:
  Session(const CompileOptions& options, target::Target target);

  const std::string db_, shipped_folder_;
  const bool use_db_, use_shipped_;
  const machine::Machine& machine_;
  const target::Target target_;
  const std::string device_;
  const int threads_;
  const trial::Accuracy accuracy_;
  CostModelPtr cost_, guide_;
  std::unique_ptr<db::Store> own_store_;
  db::Store* store_ = nullptr;
  ThreadPool pool_;
  TaskTable tasks_;
  KernelTable kernels_;
  std::optional<std::optional<trial::Roofline>> roofline_;
  std::optional<std::vector<trial::Record>> shipped_;
};

}  // namespace hone
