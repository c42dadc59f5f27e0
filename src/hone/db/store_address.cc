#include "hone/db/store_address.h"

#include <algorithm>
#include <cctype>

#include "hone/base/closest_name.h"
#include "hone/db/registry.h"

namespace hone::db {
namespace {

constexpr const char* kExpected =
    "expected postgres://user@host:port/database, or a file name (./NAME, if it is one)";

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kIgnored = " \t\r\n\v\f\"'";
  const size_t begin = text.find_first_not_of(kIgnored);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kIgnored) + 1 - begin);
}

// "./x", "/x", "../x": nothing but a path begins so. Two slashes may be the rest of an address.
bool is_plain_path(std::string_view where) {
  return (where.starts_with('/') && !where.starts_with("//")) || where.starts_with("./") ||
         where.starts_with("../");
}

// "postgres:...", misspelt or not: what comes before the first colon.
bool has_server_scheme(std::string_view lower) {
  const size_t colon = lower.find(':');
  if (colon == std::string_view::npos || colon > 20) return false;
  const std::string_view scheme = lower.substr(0, colon);
  if (scheme == "pg" || scheme == "psql" || scheme == "pgsql") return true;
  return scheme.size() >= 5 &&
         (edit_distance(scheme, "postgres") <= 2 || edit_distance(scheme, "postgresql") <= 3);
}

// libpq's "host=db.example.org password=...".
bool has_keywords(std::string_view lower) {
  for (const std::string_view keyword :
       {"password", "passfile", "host", "hostaddr", "dbname", "user", "service", "sslmode"}) {
    for (size_t at = lower.find(keyword); at != std::string_view::npos;
         at = lower.find(keyword, at + 1)) {
      const bool begins = at == 0 || std::isspace(static_cast<unsigned char>(lower[at - 1])) != 0;
      const size_t rest = lower.find_first_not_of(' ', at + keyword.size());
      if (begins && rest != std::string_view::npos && lower[rest] == '=') return true;
    }
  }
  return false;
}

// "user:password@host/...".
bool has_password_of_user(std::string_view where) {
  const size_t at = where.find('@'), colon = where.find(':');
  return at != std::string_view::npos && colon < at &&
         where.find('/', at) != std::string_view::npos;
}

// Checks a server's address. A slash, a question mark or an @ in a password must be encoded: libpq
// would take a part of the password for the host or the database, and name it in its messages.
Status check_server(std::string_view where) {
  std::string_view rest = where.substr(where.find("://") + 3);
  const size_t options = std::min(rest.find('?'), rest.size());
  const std::string_view before = rest.substr(0, options), after = rest.substr(options);
  const size_t path = std::min(before.find('/'), before.size());
  const std::string_view host = before.substr(0, path);
  const auto ats = std::count(host.begin(), host.end(), '@');
  bool misplaced = ats > 1 || before.find('@', path) != std::string_view::npos;
  if (ats == 0 && after.find('@') != std::string_view::npos) {
    const std::string_view port = host.substr(std::min(host.find(':'), host.size()));
    misplaced |= port.find_first_not_of("0123456789", 1) != std::string_view::npos;
  }
  if (!misplaced) return ok_status();
  return invalid(
      "found a server's address with an @ at a place where none belongs, expected %40 for an @, %2F "
      "for a / and %3F for a ? within a password");
}

// Returns the place of the password in a server's address; npos if it has none.
std::pair<size_t, size_t> password_of(std::string_view where) {
  constexpr size_t kNone = std::string_view::npos;
  const size_t scheme = where.find("://");
  if (scheme == kNone) return {kNone, 0};
  const size_t begin = scheme + 3, at = where.rfind('@');
  const size_t colon = where.find(':', begin);
  if (at == kNone || colon == kNone || colon > at) return {kNone, 0};
  return {colon + 1, at - colon - 1};
}

}  // namespace

bool is_server(std::string_view where) {
  return where.starts_with("postgres://") || where.starts_with("postgresql://");
}

std::string store_name(std::string_view where) {
  if (!is_server(where)) {
    return check_address(where).ok() ? std::string(where) : "an address that is none";
  }
  const size_t begin = where.find("://") + 3;
  // Up to the last @, wherever it is: a password may hold any character.
  const size_t at = where.rfind('@');
  const size_t host = at == std::string_view::npos ? begin : at + 1;
  const size_t end = std::min(where.find('?', host), where.size());
  return fmt::format("{}{}", where.substr(0, begin), where.substr(host, end - host));
}

Status check_address(std::string_view where) {
  if (is_server(where)) return check_server(where);
  if (is_plain_path(where)) return ok_status();
  const std::string lower = lower_case(trimmed(where));
  if (lower == ":memory:")
    return invalid(
        "found ':memory:', which would keep nothing, expected a file name or no "
        "database (RecordOptions::use_db, --no-db)");
  if (lower.starts_with("file:"))
    return invalid("found an address with file:, expected a file name (./file:..., if it is one)");
  if (has_server_scheme(lower) || has_keywords(lower) || lower.find("://") != std::string::npos ||
      has_password_of_user(lower))
    return invalid("found something like the address of a server, {}", kExpected);
  return ok_status();
}

std::string without_password(std::string_view where) {
  std::string hidden(where);
  if (const auto [begin, size] = password_of(where); begin != std::string_view::npos)
    hidden.replace(begin, size, std::string(size, '*'));
  constexpr std::string_view kKeyword = "password=";
  const std::string lower = lower_case(hidden);
  for (size_t at = lower.find(kKeyword); at != std::string::npos;
       at = lower.find(kKeyword, at + 1)) {
    const size_t begin = at + kKeyword.size();
    const size_t end = std::min(lower.find_first_of("& ", begin), lower.size());
    hidden.replace(begin, end - begin, std::string(end - begin, '*'));
  }
  return hidden;
}

}  // namespace hone::db
