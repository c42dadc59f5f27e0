// session/session.h - owns everything that a job needs: the device, the cost models, the store, the
// records that come with Hone, what was measured at smaller sizes, the threads, and the tasks and
// kernels that it has made so far. A command opens one session from its options and passes it on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/backend/keeps_code.h"
#include "hone/base/thread_pool.h"
#include "hone/cost/cost_model.h"
#include "hone/db/store.h"
#include "hone/machine/machine.h"
#include "hone/session/compile_options.h"
#include "hone/session/kernel_table.h"
#include "hone/session/refiner.h"
#include "hone/session/size_times.h"
#include "hone/session/task.h"
#include "hone/trial/record.h"
#include "hone/trial/roofline.h"

namespace hone {

using CostModelPtr = std::shared_ptr<cost::CostModel>;

// The options of a session besides those of a model.
struct SessionOptions {
  // How the store of CompileOptions::db is opened: kRead opens it if it exists, kWrite creates it
  // if it does not. Without CompileOptions::use_db, none is opened.
  enum class Store : uint8_t { kNone, kRead, kWrite } store = Store::kRead;
  // The cost model that guides a search. If it is empty, it is CompileOptions::cost.
  std::string guide;
  std::string adapt = "none";  // how a net that guides the search learns (neural/net_adaptation.h)
  // Replaces the store that CompileOptions::db names. It must outlive the session.
  db::Store* opened = nullptr;
};

class Session {
 public:
  // Opens a session. It is an error if an option has an unknown name or the store cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const CompileOptions& options,
                                                             const SessionOptions& more = {});

  // Returns the machine that measures. Code is compiled for target(), which this machine need not
  // be able to run.
  [[nodiscard]] const machine::Machine& machine() const { return machine_; }
  [[nodiscard]] const target::Target& target() const { return target_; }
  [[nodiscard]] const std::string& device() const { return device_; }  // target::device_key
  [[nodiscard]] int threads() const { return threads_; }  // number of threads that libraries run on
  [[nodiscard]] trial::Accuracy accuracy() const { return accuracy_; }
  [[nodiscard]] const CostModelPtr& cost() const { return cost_; }
  [[nodiscard]] const CostModelPtr& guide() const { return guide_; }  // may be the same as cost()
  // Returns what chooses again among the best predicted schedules; null if nothing does.
  [[nodiscard]] const Refiner* refiner() const { return refiner_.get(); }
  [[nodiscard]] db::Store* store() const { return store_; }  // null if there is none
  [[nodiscard]] ThreadPool& pool() { return pool_; }  // has all cores that this process may use
  // Returns who is told what the job's thread does (JobHooks::phases); may be null.
  [[nodiscard]] PhaseClock* phases() { return phases_; }
  [[nodiscard]] TaskTable& tasks() { return tasks_; }
  // Returns what was measured at smaller sizes than the largest.
  [[nodiscard]] SizeTimes& size_times() { return size_times_; }
  [[nodiscard]] KernelTable& kernels() { return kernels_; }
  // Returns the machine's limits as `hone devices --measure` or tune() measured them, if the store
  // has them. They are read on the first call; if they cannot be read, there are none.
  [[nodiscard]] const std::optional<trial::Roofline>& roofline();
  // Returns the records that come with Hone for this device, of all tasks; none if they are not to
  // be used. They are read on the first call; a broken file is an error.
  [[nodiscard]] Result<const std::vector<trial::Record>*> shipped();

 private:
  Session(const CompileOptions& options, const machine::Machine& machine, target::Target target);

  const std::string db_, shipped_folder_;
  const bool use_db_, use_shipped_;
  const machine::Machine& machine_;
  const target::Target target_;
  const std::string device_;
  const int threads_;
  const trial::Accuracy accuracy_;
  CostModelPtr cost_, guide_;
  std::shared_ptr<const Refiner> refiner_;
  std::unique_ptr<db::Store> own_store_;
  db::Store* store_ = nullptr;
  ThreadPool pool_;
  PhaseClock* const phases_;
  TaskTable tasks_;
  SizeTimes size_times_;
  KernelTable kernels_;
  std::optional<backend::KeepsCode> keeps_code_;  // set if a database is used
  std::optional<std::optional<trial::Roofline>> roofline_;
  std::optional<std::vector<trial::Record>> shipped_;
};

}  // namespace hone
