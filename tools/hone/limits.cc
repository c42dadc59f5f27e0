#include "limits.h"

#include <algorithm>

#include "hone/database.h"

#include "shell_word.h"

namespace hone::tool {
namespace {

// Returns why a database, which `db` names as the user did, has no limits of a device.
std::string why_missing(const std::string& db, const std::string& device) {
  const Result<Device> found = find_device(device), host = find_device("host");
  if (!found.ok() || !host.ok() || found->key != host->key)
    return "The limits of the device are not known, as only those of this machine are measured.";
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  const std::string named = without_password(db);
  const bool plain = named.find_first_not_of(kPlain) == std::string::npos;
  return fmt::format(
      "The limits of the device are not known. Runs after 'hone devices --measure{}{}', and pages "
      "of {} database, show them.",
      named.empty() ? "" : " --db ", plain ? named : quoted(named), named.empty() ? "the" : "this");
}

}  // namespace

void Limit::add(const Limit& other) {
  if (other.seconds <= 0) return;
  what = seconds <= 0 || what == other.what ? other.what : "";
  seconds += other.seconds;
}

std::string Limit::share(double seconds_taken) const {
  if (seconds <= 0 || seconds_taken <= 0) return "-";
  return fmt::format("{:.0f} %{}{}", 100 * seconds / seconds_taken, what.empty() ? "" : " of ",
                     what);
}

Limits Limits::unknown(std::string why) {
  Limits limits;
  limits.why_unknown_ = std::move(why);
  return limits;
}

Result<Limits> Limits::load(const std::string& db, const std::string& device, int threads) {
  HONE_ASSIGN_OR_RETURN(std::optional<Roofline> roofline, stored_roofline(db, device));
  if (!roofline) return unknown(why_missing(db, device));
  if (threads == 0) {
    HONE_ASSIGN_OR_RETURN(const Device found, find_device(device));
    threads = std::max(1, found.cores);
  }
  return Limits(*std::move(roofline), threads);
}

Result<Limits> Limits::load(const CompileOptions& options) {
  if (!options.target.machine.empty())
    return unknown("The limits of machines elsewhere are not measured.");
  if (!options.records.use_db) {  // the limits of a GPU are those of its description
    HONE_ASSIGN_OR_RETURN(const Device device, find_device(options.target.device));
    if (device.gpu) return load("", device.name, options.target.threads);
    return unknown(
        "A run with --no-db knows no limits of the device, as these are kept in a database.");
  }
  return load(options.records.db, options.target.device, options.target.threads);
}

Limit Limits::of(double least_flops, double bytes, std::string_view matrix) const {
  if (!known()) return {};
  const Bound bound = least_time(least_flops, bytes, *roofline_, threads_, matrix);
  return {bound.seconds, bound.what};
}

std::vector<std::string> Limits::header(std::vector<std::string> names) const {
  if (known()) names.emplace_back("of limit");
  return names;
}

std::vector<std::string> Limits::row(std::vector<std::string> cells, const Limit& limit,
                                     double seconds) const {
  if (known()) cells.push_back(limit.share(seconds));
  return cells;
}

}  // namespace hone::tool
