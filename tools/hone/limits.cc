#include "limits.h"

#include <algorithm>

namespace hone::tool {

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

Result<Limits> Limits::load(const std::string& db, const std::string& device, int threads) {
  HONE_ASSIGN_OR_RETURN(std::optional<Roofline> roofline, stored_roofline(db, device));
  if (!roofline) return Limits();
  if (threads == 0) {
    HONE_ASSIGN_OR_RETURN(const Device found, find_device(device));
    threads = std::max(1, found.cores);
  }
  return Limits(*std::move(roofline), threads);
}

Result<Limits> Limits::load(const CompileOptions& options) {
  if (!options.target.machine.empty()) return Limits();  // those of other machines are not measured
  if (!options.records.use_db) {  // the limits of a GPU are those of its description
    HONE_ASSIGN_OR_RETURN(const Device device, find_device(options.target.device));
    return device.gpu ? load("", device.name, options.target.threads) : Limits();
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
