#include "hone/session/session.h"

#include "hone/base/file.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/db/roofline_store.h"
#include "hone/db/store_to_add.h"
#include "hone/machine/local.h"
#include "hone/session/cost_models.h"
#include "hone/session/shipped_records.h"
#include "hone/session/static_model.h"

namespace hone {
namespace {

Result<CostModelPtr> make_cost(const std::string& name, const std::string& adapt,
                               const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(
      std::unique_ptr<cost::CostModel> model,
      make_cost_model({name, options.records.db, options.records.use_db, adapt, ""}));
  return CostModelPtr(std::move(model));
}

// A search asks a model about thousands of schedules.
Status check_fast(const cost::CostModel& model, std::string_view option, const std::string& file) {
  if (model.name() != kStaticModel) return ok_status();
  return invalid(
      "{} {}: a score of machine code compiles each schedule that it judges, which takes too long "
      "for thousands of them; expected --refine {}, by which it chooses among the best few of "
      "another model",
      option, file, file);
}

// A store that only exists by default may be missing.
Result<std::unique_ptr<db::Store>> open_for_reading(const CompileOptions& options) {
  std::string where = options.records.db;
  if (where.empty()) {
    const Result<std::string> path = db::default_path();
    if (!path.ok() || !file_exists(*path)) return std::unique_ptr<db::Store>();
    where = *path;
  }
  return db::open_store(where, {.read_only = true, .create = false});
}

Result<std::unique_ptr<db::Store>> open_store(const CompileOptions& options,
                                              SessionOptions::Store access) {
  if (!options.records.use_db || access == SessionOptions::Store::kNone)
    return std::unique_ptr<db::Store>();
  return access == SessionOptions::Store::kRead ? open_for_reading(options)
                                                : db::open_store_to_add(options.records.db);
}

}  // namespace

// Returns the number of threads of the host; the launches of one keep a GPU busy.
static int threads_of(const CompileOptions& options, const target::Target& target) {
  if (options.target.threads > 0) return options.target.threads;
  return target.kind() == target::Kind::kCpu ? target.cpu().cores : 1;
}

Session::Session(const CompileOptions& options, const machine::Machine& machine,
                 target::Target target)
    : db_(options.records.db),
      shipped_folder_(options.records.shipped),
      use_db_(options.records.use_db),
      use_shipped_(options.records.use_shipped),
      machine_(machine),
      target_(std::move(target)),
      device_(target::device_key(target_)),
      threads_(threads_of(options, target_)),
      accuracy_(*trial::parse_accuracy(options.target.accuracy)),
      pool_(machine::local().target().cpu().cores),
      phases_(hooks_of(options).phases),
      tasks_(target_),
      size_times_(device_, threads_),
      kernels_(target_) {
  if (use_db_) keeps_code_.emplace();
}

Result<std::unique_ptr<Session>> Session::open(const CompileOptions& options,
                                               const SessionOptions& more) {
  HONE_RETURN_IF_ERROR(check_options(options));
  HONE_ASSIGN_OR_RETURN(const machine::Machine* const machine, machine_of(options));
  HONE_ASSIGN_OR_RETURN(target::Target target, machine->find(options.target.device));
  if (target.kind() == target::Kind::kGpu && options.target.threads > 1)
    return invalid(
        "{} threads are wanted for {}, expected 0 or 1: one thread of the host is enough",
        options.target.threads, target.name);
  const auto full_name = [&](const std::string& name) {
    return name == cost::kAutoModel ? cost::default_model(target) : name;
  };
  const std::string cost = full_name(options.advanced.cost);
  const std::string guide = more.guide.empty() ? cost : full_name(more.guide);
  HONE_ASSIGN_OR_RETURN(CostModelPtr made_guide, make_cost(guide, more.adapt, options));
  CostModelPtr made_cost = made_guide;
  if (cost != guide) {
    HONE_ASSIGN_OR_RETURN(made_cost, make_cost(cost, "none", options));
  }
  HONE_RETURN_IF_ERROR(check_fast(*made_cost, "--cost", cost));
  HONE_RETURN_IF_ERROR(check_fast(*made_guide, "--guide", guide));
  HONE_RETURN_IF_ERROR(cost::check_knows(*made_cost, cost, target));
  HONE_RETURN_IF_ERROR(cost::check_knows(*made_guide, guide, target));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const Refiner> refiner, make_refiner(options, target));
  std::unique_ptr<Session> session(new Session(options, *machine, std::move(target)));
  session->refiner_ = std::move(refiner);
  session->cost_ = std::move(made_cost);
  session->guide_ = std::move(made_guide);
  session->store_ = more.opened;
  if (more.opened == nullptr) {
    HONE_ASSIGN_OR_RETURN(session->own_store_, open_store(options, more.store));
    session->store_ = session->own_store_.get();
  }
  return session;
}

const std::optional<trial::Roofline>& Session::roofline() {
  if (!roofline_) {
    roofline_.emplace();
    if (use_db_) {
      auto stored = db::load_roofline(db_, device_);
      if (stored.ok()) *roofline_ = *std::move(stored);
    }
  }
  return *roofline_;
}

Result<const std::vector<trial::Record>*> Session::shipped() {
  if (!shipped_) {
    std::vector<trial::Record> records;
    if (use_shipped_) {
      HONE_ASSIGN_OR_RETURN(
          records,
          shipped_records(target_, shipped_folder_.empty() ? shipped_folder() : shipped_folder_));
    }
    shipped_ = std::move(records);
  }
  return &*shipped_;
}

}  // namespace hone
