#include "hone/db/roofline_store.h"

#include "hone/base/file.h"
#include "hone/db/postgres_store.h"
#include "hone/db/registry.h"
#include "hone/db/sqlite.h"
#include "hone/db/sqlite_open.h"

namespace hone::db {
namespace {

constexpr int kFirstVersion = 3;     // version of the format that has these tables
constexpr int kForkJoinVersion = 7;  // ... and fork and join of fewer threads than all cores

Result<int64_t> device_id(Connection& db, const std::string& device) {
  HONE_ASSIGN_OR_RETURN(
      Statement add,
      Statement::prepare(db, "INSERT INTO device (key) VALUES (?) ON CONFLICT (key) DO NOTHING"));
  add.bind(device);
  HONE_RETURN_IF_ERROR(add.finish());
  HONE_ASSIGN_OR_RETURN(Statement find,
                        Statement::prepare(db, "SELECT id FROM device WHERE key = ?"));
  find.bind(device);
  HONE_ASSIGN_OR_RETURN(const bool row, find.step());
  HONE_ASSERT(row, "a key that was just added is there");
  return find.integer(0);
}

Status add_fork_join(Connection& db, int64_t device, const trial::Roofline& r) {
  HONE_ASSIGN_OR_RETURN(
      Statement add,
      Statement::prepare(
          db, "INSERT INTO roofline_fork_join (device, threads, seconds) VALUES (?, ?, ?)"));
  for (const auto& [threads, seconds] : r.fork_join) {
    if (threads == r.cores) continue;
    add.bind(device).bind(threads).bind(seconds);
    HONE_RETURN_IF_ERROR(add.finish());
  }
  return ok_status();
}

Status replace(Connection& db, int64_t device, const trial::Roofline& r) {
  HONE_ASSIGN_OR_RETURN(Statement remove,
                        Statement::prepare(db, "DELETE FROM roofline WHERE device = ?"));
  remove.bind(device);
  HONE_RETURN_IF_ERROR(remove.finish());
  HONE_ASSIGN_OR_RETURN(
      Statement add,
      Statement::prepare(db,
                         "INSERT INTO roofline (device, cores, flops_one, flops_all, fork_join, "
                         "unix_time, host_load) VALUES (?, ?, ?, ?, ?, ?, ?)"));
  add.bind(device).bind(r.cores).bind(r.flops.one).bind(r.flops.all);
  add.bind(trial::fork_join_seconds(r.fork_join, r.cores));
  add.bind(r.unix_time).bind(r.host_load);
  HONE_RETURN_IF_ERROR(add.finish());
  HONE_ASSIGN_OR_RETURN(
      Statement add_level,
      Statement::prepare(db,
                         "INSERT INTO roofline_level (device, place, level, bytes, shared_by, "
                         "read_one, read_all, write_one, write_all) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  HONE_RETURN_IF_ERROR(add_fork_join(db, device, r));
  int place = 0;
  for (const trial::RooflineLevel& l : r.levels) {
    add_level.bind(device).bind(place++).bind(l.level).bind(l.bytes).bind(l.shared_by);
    add_level.bind(l.read.one).bind(l.read.all).bind(l.write.one).bind(l.write.all);
    HONE_RETURN_IF_ERROR(add_level.finish());
  }
  return ok_status();
}

Result<std::vector<trial::ForkJoin>> read_fork_join(Connection& db, int64_t version, int64_t device,
                                                    const trial::ForkJoin& all) {
  std::vector<trial::ForkJoin> figures;
  if (version >= kForkJoinVersion) {
    HONE_ASSIGN_OR_RETURN(
        Statement s, Statement::prepare(db,
                                        "SELECT threads, seconds FROM roofline_fork_join WHERE "
                                        "device = ? ORDER BY threads"));
    s.bind(device);
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, s.step());
      if (!row) break;
      figures.push_back({static_cast<int>(s.integer(0)), s.real(1)});
    }
  }
  if (all.seconds != 0) figures.push_back(all);
  return figures;
}

Result<std::vector<trial::RooflineLevel>> read_levels(Connection& db, int64_t device) {
  HONE_ASSIGN_OR_RETURN(
      Statement s,
      Statement::prepare(db,
                         "SELECT level, bytes, shared_by, read_one, read_all, write_one, write_all "
                         "FROM roofline_level WHERE device = ? ORDER BY place"));
  s.bind(device);
  std::vector<trial::RooflineLevel> levels;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, s.step());
    if (!row) return levels;
    levels.push_back({.level = static_cast<int>(s.integer(0)),
                      .bytes = s.integer(1),
                      .shared_by = static_cast<int>(s.integer(2)),
                      .read = {s.real(3), s.real(4)},
                      .write = {s.real(5), s.real(6)}});
  }
}

}  // namespace

Status save_roofline(std::string_view where, const std::string& device,
                     const trial::Roofline& roofline) {
  HONE_RETURN_IF_ERROR(trial::check(roofline));
  if (device.empty()) return invalid("a roofline needs a device key");
  if (is_server(where)) return save_postgres_roofline(where, device, roofline);
  HONE_ASSIGN_OR_RETURN(const std::string path, store_path(where, {}));
  HONE_ASSIGN_OR_RETURN(const auto db, open_sqlite(path, {}));
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db));
  HONE_ASSIGN_OR_RETURN(const int64_t id, device_id(*db, device));
  HONE_RETURN_IF_ERROR(replace(*db, id, roofline));
  return transaction.commit();
}

Result<std::optional<trial::Roofline>> load_roofline(std::string_view where,
                                                     const std::string& device) {
  if (is_server(where)) return load_postgres_roofline(where, device);
  const StoreOptions options = {.read_only = true, .create = false};
  const Result<std::string> path = store_path(where, options);
  const bool is_default = where.empty();
  if (is_default && (!path.ok() || !file_exists(*path))) return std::optional<trial::Roofline>();
  HONE_RETURN_IF_ERROR(path.status());
  HONE_ASSIGN_OR_RETURN(const auto db, open_sqlite(*path, options));
  HONE_ASSIGN_OR_RETURN(const int64_t version, db->integer("PRAGMA user_version"));
  if (version < kFirstVersion) return std::optional<trial::Roofline>();
  HONE_ASSIGN_OR_RETURN(
      Statement s,
      Statement::prepare(*db,
                         "SELECT device.id, cores, flops_one, flops_all, fork_join, unix_time, "
                         "host_load FROM roofline JOIN device ON device.id = roofline.device "
                         "WHERE device.key = ?"));
  s.bind(device);
  HONE_ASSIGN_OR_RETURN(const bool row, s.step());
  if (!row) return std::optional<trial::Roofline>();
  trial::Roofline r = {.cores = static_cast<int>(s.integer(1)),
                       .flops = {s.real(2), s.real(3)},
                       .levels = {},
                       .unix_time = s.integer(5),
                       .host_load = s.real(6)};
  const int64_t id = s.integer(0);
  HONE_ASSIGN_OR_RETURN(r.fork_join, read_fork_join(*db, version, id, {r.cores, s.real(4)}));
  HONE_ASSIGN_OR_RETURN(r.levels, read_levels(*db, id));
  const Status status = trial::check(r);
  if (!status.ok())
    return error(Code::kIo, "database {} is corrupt ({}); set it aside and use another --db", *path,
                 status.message());
  return std::optional(std::move(r));
}

}  // namespace hone::db
