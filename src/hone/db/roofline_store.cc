#include "hone/db/roofline_store.h"

#include "hone/base/file.h"
#include "hone/db/registry.h"
#include "hone/db/sql_database.h"

namespace hone::db {
namespace {

// Versions of the tables that have these figures, and fork and join of fewer threads than all
// cores.
constexpr int64_t kFirstVersion = 3, kForkJoinVersion = 7;

Status replace(Database& db, const std::string& device, const trial::Roofline& r) {
  const Parameter key[] = {device};
  HONE_RETURN_IF_ERROR(
      db.run("INSERT INTO device (key) VALUES ($1) ON CONFLICT (key) DO NOTHING", key).status());
  // Who else replaces the figures of this device waits here.
  int64_t id = 0;
  HONE_RETURN_IF_ERROR(
      db.run(fmt::format("SELECT id FROM device WHERE key = $1{}", db.dialect().lock), key,
             [&](const Row& row) {
               id = row.integer(0);
               return ok_status();
             })
          .status());
  if (id == 0)
    return error(Code::kIo, "database {}: the device {} was removed, try again", db.name(), device);
  const Parameter own[] = {id};
  HONE_RETURN_IF_ERROR(db.run("DELETE FROM roofline WHERE device = $1", own).status());
  const Parameter figures[] = {id,
                               int64_t{r.cores},
                               r.flops.one,
                               r.flops.all,
                               trial::fork_join_seconds(r.fork_join, r.cores),
                               r.unix_time,
                               r.host_load};
  HONE_RETURN_IF_ERROR(
      db.run("INSERT INTO roofline (device, cores, flops_one, flops_all, fork_join, unix_time, "
             "host_load) VALUES ($1, $2, $3, $4, $5, $6, $7)",
             figures)
          .status());
  for (const auto& [threads, seconds] : r.fork_join) {
    if (threads == r.cores) continue;
    const Parameter figure[] = {id, int64_t{threads}, seconds};
    HONE_RETURN_IF_ERROR(db.run("INSERT INTO roofline_fork_join (device, threads, seconds) VALUES "
                                "($1, $2, $3)",
                                figure)
                             .status());
  }
  int64_t place = 0;
  for (const trial::RooflineLevel& l : r.levels) {
    const Parameter level[] = {
        id,         place++,    int64_t{l.level}, l.bytes,    int64_t{l.shared_by},
        l.read.one, l.read.all, l.write.one,      l.write.all};
    HONE_RETURN_IF_ERROR(
        db.run("INSERT INTO roofline_level (device, place, level, bytes, shared_by, read_one, "
               "read_all, write_one, write_all) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
               level)
            .status());
  }
  return ok_status();
}

// Selects the figures of a device ($1) with one row for each level and each number of threads: one
// statement sees the figures of one moment.
std::string select_roofline(int64_t version) {
  return fmt::format(
      "SELECT cores, flops_one, flops_all, fork_join, unix_time, host_load, threads, level, bytes, "
      "shared_by, read_one, read_all, write_one, write_all FROM roofline LEFT JOIN (SELECT device, "
      "0 AS threads, place, level, bytes, shared_by, read_one, read_all, write_one, write_all FROM "
      "roofline_level{}) AS part ON part.device = roofline.device WHERE roofline.device = (SELECT "
      "id FROM device WHERE key = $1) ORDER BY threads, place",
      version < kForkJoinVersion ? ""
                                 : " UNION ALL SELECT device, threads, 0, 0, 0, 0, seconds, 0.0, "
                                   "0.0, 0.0 FROM roofline_fork_join");
}

Result<std::optional<trial::Roofline>> load(Database& db, const std::string& device) {
  std::optional<trial::Roofline> found;
  if (db.dialect().version < kFirstVersion) return found;
  trial::ForkJoin all;
  const Parameter key[] = {device};
  HONE_RETURN_IF_ERROR(db.run(select_roofline(db.dialect().version), key, [&](const Row& row) {
                           if (!found) {
                             found = trial::Roofline{.cores = static_cast<int>(row.integer(0)),
                                                     .flops = {row.real(1), row.real(2)},
                                                     .levels = {},
                                                     .unix_time = row.integer(4),
                                                     .host_load = row.real(5)};
                             all = {found->cores, row.real(3)};
                           }
                           if (const auto threads = static_cast<int>(row.integer(6)); threads > 0) {
                             found->fork_join.push_back({threads, row.real(10)});
                           } else {
                             found->levels.push_back({.level = static_cast<int>(row.integer(7)),
                                                      .bytes = row.integer(8),
                                                      .shared_by = static_cast<int>(row.integer(9)),
                                                      .read = {row.real(10), row.real(11)},
                                                      .write = {row.real(12), row.real(13)}});
                           }
                           return ok_status();
                         }).status());
  if (!found) return found;
  if (all.seconds != 0) found->fork_join.push_back(all);
  const Status status = trial::check(*found);
  if (!status.ok())
    return error(Code::kIo, "database {} is corrupt ({}); set it aside and use another database",
                 db.name(), status.message());
  return found;
}

}  // namespace

Status save_roofline(std::string_view where, const std::string& device,
                     const trial::Roofline& roofline) {
  HONE_RETURN_IF_ERROR(trial::check(roofline));
  if (device.empty()) return invalid("a roofline needs a device key");
  HONE_ASSIGN_OR_RETURN(const auto db, open_database(where, {}));
  return db->transact([&] { return replace(*db, device, roofline); });
}

Result<std::optional<trial::Roofline>> load_roofline(std::string_view where,
                                                     const std::string& device) {
  const StoreOptions options = {.read_only = true, .create = false};
  if (where.empty()) {
    const Result<std::string> path = store_path(where, options);
    if (!path.ok() || !file_exists(*path)) return std::optional<trial::Roofline>();
  }
  HONE_ASSIGN_OR_RETURN(const auto db, open_database(where, options));
  return load(*db, device);
}

}  // namespace hone::db
