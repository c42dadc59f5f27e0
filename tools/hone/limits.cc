#include "limits.h"

#include "hone/db/roofline_store.h"

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

Result<Limits> Limits::load(const std::string& db, const target::Target& target, int threads) {
  auto roofline = db::load_roofline(db, target::device_key(target));
  if (!roofline.ok() && !db.empty()) return roofline.status();
  if (!roofline.ok() || !roofline->has_value()) return Limits();
  return Limits(**std::move(roofline), threads > 0 ? threads : target.cores);
}

Result<Limits> Limits::load(const CompileOptions& options) {
  if (!options.use_db) return Limits();
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(options.device));
  return load(options.db, target, options.threads);
}

Limit Limits::of(double least_flops, double bytes) const {
  if (!known()) return {};
  const trial::Bound bound = trial::bound(least_flops, bytes, bytes, *roofline_, threads_);
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
