#include "hone/db/sensitivity_store.h"

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/base/options.h"
#include "hone/db/registry.h"
#include "hone/db/sql_database.h"

namespace hone::db {
namespace {

constexpr int64_t kFirstVersion = 10;   // the tables have sensitivities from this one on
constexpr int64_t kMemoryVersion = 11;  // they have the share of memory from this one on
constexpr double kUnknown = -1;         // the share of memory of a task of which nobody said it

Status replace(Database& db, const std::string& device, const trial::TaskSensitivity& task) {
  const Parameter own[] = {device, int64_t{task.threads}, hash_hex(task.task)};
  HONE_RETURN_IF_ERROR(db.run("DELETE FROM sensitivity WHERE device = (SELECT id FROM device WHERE "
                              "key = $1) AND threads = $2 AND task = $3",
                              own)
                           .status());
  for (const auto& [role, effect] : task.roles) {
    const Parameter row[] = {device,
                             int64_t{task.threads},
                             hash_hex(task.task),
                             role,
                             int64_t{trial::kSensitivityVersion},
                             task.kernel_class,
                             task.shape,
                             effect.gain,
                             effect.loss,
                             task.unix_time,
                             task.memory.value_or(kUnknown)};
    HONE_RETURN_IF_ERROR(
        db.run(
              "INSERT INTO sensitivity (device, threads, task, role, version, kernel_class, "
              "shape, gain, loss, unix_time, memory) VALUES ((SELECT id FROM device WHERE key = $1), "
              "$2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
              row)
            .status());
  }
  return ok_status();
}

Result<uint64_t> task_of(const Row& row) {
  const std::string text = row.text(0);
  const Result<uint64_t> key = parse_key(text);
  if (!key.ok()) return invalid("the key of a task is '{}'", text);
  return *key;
}

struct Loaded {
  std::vector<trial::TaskSensitivity> tasks;
  int64_t other_version = 0;  // of some row; 0: there is none
};

// Adds a row of the answer, which is in the order of tasks.
Status add_row(const Row& row, int threads, Loaded& loaded) {
  if (row.integer(2) != trial::kSensitivityVersion) {
    loaded.other_version = row.integer(2);
    return ok_status();
  }
  HONE_ASSIGN_OR_RETURN(const uint64_t key, task_of(row));
  std::vector<trial::TaskSensitivity>& tasks = loaded.tasks;
  if (tasks.empty() || tasks.back().task != key) {
    tasks.push_back({.task = key,
                     .kernel_class = row.text(3),
                     .shape = row.text(4),
                     .threads = threads,
                     .unix_time = row.integer(7)});
    if (row.real(8) != kUnknown) tasks.back().memory = row.real(8);
  }
  tasks.back().roles[row.text(1)] = {row.real(5), row.real(6)};
  return ok_status();
}

Result<Loaded> load(Database& db, const std::string& device, int threads) {
  Loaded loaded;
  if (db.dialect().version < kFirstVersion) return loaded;
  const Parameter key[] = {device, int64_t{threads}};
  const bool has_memory = db.dialect().version >= kMemoryVersion;
  const std::string select = fmt::format(
      "SELECT task, role, version, kernel_class, shape, gain, loss, unix_time, {} "
      "FROM sensitivity WHERE device = (SELECT id FROM device WHERE key = $1) "
      "AND threads = $2 ORDER BY task, role",
      has_memory ? "memory" : "-1.0");
  Status status =
      db.run(select, key, [&](const Row& row) { return add_row(row, threads, loaded); }).status();
  for (const trial::TaskSensitivity& task : loaded.tasks) {
    if (status.ok()) status = trial::check(task);
  }
  if (status.code() == Code::kInvalid)
    return error(Code::kIo, "database {} is corrupt ({}); set it aside and use another database",
                 db.name(), status.message());
  HONE_RETURN_IF_ERROR(status);
  return loaded;
}

}  // namespace

Status save_sensitivities(std::string_view where, const std::string& device,
                          std::span<const trial::TaskSensitivity> tasks) {
  for (const trial::TaskSensitivity& task : tasks) HONE_RETURN_IF_ERROR(trial::check(task));
  if (device.empty()) return invalid("sensitivities need a device key");
  HONE_ASSIGN_OR_RETURN(const auto db, open_database(where, {}));
  return db->transact([&]() -> Status {
    const Parameter key[] = {device};
    HONE_RETURN_IF_ERROR(
        db->run("INSERT INTO device (key) VALUES ($1) ON CONFLICT (key) DO NOTHING", key).status());
    for (const trial::TaskSensitivity& task : tasks)
      HONE_RETURN_IF_ERROR(replace(*db, device, task));
    return ok_status();
  });
}

Result<std::vector<trial::TaskSensitivity>> load_sensitivities(std::string_view where,
                                                               const std::string& device,
                                                               int threads) {
  const StoreOptions options = {.read_only = true, .create = false};
  if (where.empty()) {
    const Result<std::string> path = store_path(where, options);
    if (!path.ok() || !file_exists(*path)) return std::vector<trial::TaskSensitivity>();
  }
  HONE_ASSIGN_OR_RETURN(const auto db, open_database(where, options));
  HONE_ASSIGN_OR_RETURN(Loaded loaded, load(*db, device, threads));
  if (loaded.tasks.empty() && loaded.other_version != 0) {
    return invalid(
        "database {}: sensitivities of {} have version {}, expected {}: measure them again with "
        "hone sensitivity",
        db->name(), device, loaded.other_version, trial::kSensitivityVersion);
  }
  return std::move(loaded.tasks);
}

}  // namespace hone::db
