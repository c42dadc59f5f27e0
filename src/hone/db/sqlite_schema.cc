#include "hone/db/sqlite_schema.h"

#include <map>
#include <utility>

#include "hone/db/schema.h"

namespace hone::db {
namespace {

// Definitions as SQL, by kind and name: {"table", "trial"}.
using Definitions = std::map<std::pair<std::string, std::string>, std::string>;

constexpr size_t kMost = 1000;  // definitions of a file that are looked at

// Each run of blanks as one: releases may have written line ends otherwise.
std::string with_single_blanks(std::string_view sql) {
  std::string text;
  for (const char c : sql) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  return text;
}

// The counters of AUTOINCREMENT, the figures of ANALYZE, and indices of UNIQUE and PRIMARY KEY,
// which have no text.
bool is_sqlite_own(const std::string& kind, const std::string& name, const std::string& sql) {
  if (kind == "index") return sql.empty() && name.starts_with("sqlite_autoindex_");
  return kind == "table" && (name == "sqlite_sequence" || name.starts_with("sqlite_stat"));
}

Result<Definitions> definitions_of(Connection& db) {
  HONE_ASSIGN_OR_RETURN(Statement s,
                        Statement::prepare(db, "SELECT type, name, sql FROM sqlite_schema"));
  Definitions definitions;
  while (definitions.size() < kMost) {
    HONE_ASSIGN_OR_RETURN(const bool row, s.step());
    if (!row) break;
    const std::string kind = s.text(0), name = s.text(1), sql = s.text(2);
    if (!is_sqlite_own(kind, name, sql)) definitions[{kind, name}] = with_single_blanks(sql);
  }
  return definitions;
}

Result<Definitions> definitions_of_version(int version) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nullptr);
  Connection memory(handle, ":memory:");
  if (code != SQLITE_OK) return error(Code::kInternal, "no database in memory: out of memory");
  for (int v = 0; v < version; ++v) HONE_RETURN_IF_ERROR(memory.run(kMigrations[v]));
  return definitions_of(memory);
}

}  // namespace

Status check_schema(Connection& db, int version) {
  HONE_ASSIGN_OR_RETURN(const Definitions expected, definitions_of_version(version));
  HONE_ASSIGN_OR_RETURN(const Definitions found, definitions_of(db));
  const auto refuse = [&](std::string_view what) {
    return invalid("database {} {}; set it aside and use another database", db.path(), what);
  };
  for (const auto& [key, sql] : found) {
    const auto& [kind, name] = key;
    const auto own = expected.find(key);
    if (own == expected.end())
      return refuse(fmt::format("has a {} '{}', which is none of hone's", kind, name));
    if (own->second != sql)
      return refuse(fmt::format("defines the {} '{}' in another way than hone does", kind, name));
  }
  for (const auto& [key, sql] : expected) {
    if (!found.contains(key))
      return refuse(fmt::format("lacks the {} '{}'", key.first, key.second));
  }
  return ok_status();
}

}  // namespace hone::db
