#include "hone/db/postgres_open.h"
#include "hone/db/postgres_store.h"

namespace hone::db {
namespace {

Status replace(PostgresConnection& db, const std::string& device, const trial::Roofline& r) {
  const Parameter key[] = {device};
  HONE_RETURN_IF_ERROR(
      db.run("INSERT INTO device (key) VALUES ($1) ON CONFLICT (key) DO NOTHING", key).status());
  // Who else replaces the figures of this device waits here.
  HONE_ASSIGN_OR_RETURN(const PostgresRows found,
                        db.run("SELECT id FROM device WHERE key = $1 FOR UPDATE", key));
  if (found.size() != 1)
    return error(Code::kIo, "database {}: the device {} was removed, try again", db.name(), device);
  const int64_t id = found.row(0).integer(0);
  const Parameter own[] = {id};
  HONE_RETURN_IF_ERROR(db.run("DELETE FROM roofline WHERE device = $1", own).status());
  const Parameter figures[] = {id,
                               int64_t{r.cores},
                               real(r.flops.one),
                               real(r.flops.all),
                               real(trial::fork_join_seconds(r.fork_join, r.cores)),
                               r.unix_time,
                               real(r.host_load)};
  HONE_RETURN_IF_ERROR(
      db.run("INSERT INTO roofline (device, cores, flops_one, flops_all, fork_join, unix_time, "
             "host_load) VALUES ($1, $2, $3, $4, $5, $6, $7)",
             figures)
          .status());
  for (const auto& [threads, seconds] : r.fork_join) {
    if (threads == r.cores) continue;
    const Parameter figure[] = {id, int64_t{threads}, real(seconds)};
    HONE_RETURN_IF_ERROR(db.run("INSERT INTO roofline_fork_join (device, threads, seconds) VALUES "
                                "($1, $2, $3)",
                                figure)
                             .status());
  }
  int64_t place = 0;
  for (const trial::RooflineLevel& l : r.levels) {
    const Parameter level[] = {id,
                               place++,
                               int64_t{l.level},
                               l.bytes,
                               int64_t{l.shared_by},
                               real(l.read.one),
                               real(l.read.all),
                               real(l.write.one),
                               real(l.write.all)};
    HONE_RETURN_IF_ERROR(
        db.run("INSERT INTO roofline_level (device, place, level, bytes, shared_by, read_one, "
               "read_all, write_one, write_all) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
               level)
            .status());
  }
  return ok_status();
}

}  // namespace

Status save_postgres_roofline(std::string_view uri, const std::string& device,
                              const trial::Roofline& roofline) {
  HONE_ASSIGN_OR_RETURN(const auto db, open_postgres(uri, {}));
  HONE_ASSIGN_OR_RETURN(PostgresTransaction transaction, PostgresTransaction::begin(*db));
  HONE_RETURN_IF_ERROR(replace(*db, device, roofline));
  return transaction.commit();
}

Result<std::optional<trial::Roofline>> load_postgres_roofline(std::string_view uri,
                                                              const std::string& device) {
  HONE_ASSIGN_OR_RETURN(const auto db, open_postgres(uri, {.read_only = true, .create = false}));
  HONE_ASSIGN_OR_RETURN(const int version, postgres_version(*db));
  const auto column = [version](const char* name) {
    // Version of the tables that have fork and join times of fewer threads.
    constexpr int kFirst = 5;
    if (version < kFirst) return std::string(", '{}'::double precision[]");
    return fmt::format(
        ", ARRAY(SELECT {}::double precision FROM roofline_fork_join AS fork_join "
        "WHERE fork_join.device = roofline.device ORDER BY threads)",
        name);
  };
  const Parameter key[] = {device};
  // One statement sees the figures of one moment: one row for each level.
  HONE_ASSIGN_OR_RETURN(
      const PostgresRows rows,
      db->run("SELECT cores, flops_one, flops_all, fork_join, unix_time, host_load, level, bytes, "
              "shared_by, read_one, read_all, write_one, write_all" +
                  column("threads") + column("seconds") +
                  " FROM roofline JOIN device ON "
                  "device.id = roofline.device JOIN roofline_level ON roofline_level.device = "
                  "roofline.device WHERE device.key = $1 ORDER BY place",
              key));
  if (rows.size() == 0) return std::optional<trial::Roofline>();
  const PostgresRows::Row first = rows.row(0);
  trial::Roofline r = {.cores = static_cast<int>(first.integer(0)),
                       .flops = {first.real(1), first.real(2)},
                       .levels = {},
                       .unix_time = first.integer(4),
                       .host_load = first.real(5)};
  const std::vector<double> threads = first.reals(13), seconds = first.reals(14);
  for (size_t i = 0; i < threads.size(); ++i)
    r.fork_join.push_back({static_cast<int>(threads[i]), seconds[i]});
  if (first.real(3) != 0) r.fork_join.push_back({r.cores, first.real(3)});
  for (int i = 0; i < rows.size(); ++i) {
    const PostgresRows::Row row = rows.row(i);
    r.levels.push_back({.level = static_cast<int>(row.integer(6)),
                        .bytes = row.integer(7),
                        .shared_by = static_cast<int>(row.integer(8)),
                        .read = {row.real(9), row.real(10)},
                        .write = {row.real(11), row.real(12)}});
  }
  const Status status = trial::check(r);
  if (!status.ok())
    return error(Code::kIo, "database {} is corrupt ({})", db->name(), status.message());
  return std::optional(std::move(r));
}

}  // namespace hone::db
