#include "hone/database.h"

#include "hone/api/tidy_trials.h"
#include "hone/base/status.h"
#include "hone/commands/record_check.h"
#include "hone/db/copy.h"
#include "hone/db/line_check.h"
#include "hone/db/registry.h"
#include "hone/db/store_address.h"
#include "hone/db/store_to_add.h"
#include "hone/db/trial_info.h"
#include "hone/session/shipped_records.h"

namespace hone {
namespace {

db::Filter filter_of(const TrialFilter& filter) {
  db::Filter wanted;
  wanted.task = filter.task;
  wanted.kernel_class = filter.kernel_class;
  wanted.device = filter.device;
  wanted.model = filter.model;
  wanted.threads = filter.threads;
  if (filter.parts) wanted.parts = db::Filter::Parts::kAll;
  return wanted;
}

}  // namespace

Status check_database(std::string_view db) { return db::check_address(db); }

std::vector<std::string> database_files(std::string_view db) {
  std::vector<std::string> files;
  if (db::is_server(db)) return files;
  const Result<std::string> path = db::store_path(db, {.read_only = true, .create = false});
  if (!path.ok()) return files;
  for (const char* ending : {"", "-wal", "-shm", "-journal"}) files.push_back(*path + ending);
  return files;
}

std::string database_name(std::string_view db) { return db::store_name(db); }
std::string without_password(std::string_view db) { return db::without_password(db); }

struct Database::State {
  std::unique_ptr<db::Store> store;
};

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(const std::string& db, Access access) {
  auto state = std::make_unique<State>();
  if (access == Access::kAdd) {
    HONE_ASSIGN_OR_RETURN(state->store, db::open_store_to_add(db));
  } else {
    HONE_ASSIGN_OR_RETURN(state->store, db::open_store(db, {.read_only = access == Access::kRead,
                                                            .create = access == Access::kCreate}));
  }
  return Database(std::move(state));
}

Status Database::for_each(const TrialFilter& filter,
                          const std::function<Status(TrialInfo&&)>& visit) {
  return db::for_each_record(*state_->store, filter_of(filter), [&](trial::Record&& record) {
    return visit(db::info_of(std::move(record)));
  });
}

Result<CopiedTrials> Database::read_lines(const std::string& path) {
  RecordCheck check;
  const auto check_line = [&check](const trial::Record& record) { return check.claims_of(record); };
  return db::import_json_lines(path, *state_->store, check_line);
}

Result<int64_t> Database::write_lines(const std::string& path, const TrialFilter& filter) {
  return db::export_json_lines(*state_->store, filter_of(filter), path);
}

Result<CopiedTrials> Database::merge(Database& other) {
  return db::copy_records(*other.state_->store, *state_->store);
}

Result<DatabaseProblems> Database::verify() {
  DatabaseProblems found;
  HONE_ASSIGN_OR_RETURN(found.problems, state_->store->verify());
  RecordCheck check;
  const db::Filter all = {.with_task_text = true, .parts = db::Filter::Parts::kAll};
  const Status read = db::for_each_record(*state_->store, all, [&](trial::Record&& record) {
    ++found.trials;
    for (std::string& problem : check.problems_of(record))
      found.problems.push_back(std::move(problem));
    return ok_status();
  });
  if (!read.ok()) found.problems.push_back(read.message());
  return found;
}

Result<TidyResult> Database::tidy(const TidyOptions& options) {
  return tidy_trials(*state_->store, options);
}

Result<std::map<std::string, std::string>> Database::shipped_files() {
  return make_shipped_files(*state_->store);
}

}  // namespace hone
