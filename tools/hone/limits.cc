#include "limits.h"

#include "hone/db/roofline_store.h"

namespace hone::tool {

Limits Limits::load(const std::string& db, const target::Target& target, int threads) {
  auto roofline = db::load_roofline(db, target::device_key(target));
  if (!roofline.ok() || !roofline->has_value()) return {};
  return {**std::move(roofline), threads > 0 ? threads : target.cores};
}

Limits Limits::load(const CompileOptions& options) {
  const Result<target::Target> target = target::find(options.device);
  if (!options.use_db || !target.ok()) return {};
  return load(options.db, *target, options.threads);
}

double Limits::seconds(double flops, double bytes) const {
  return known() ? measure::bound_seconds(flops, bytes, bytes, *roofline_, threads_) : 0;
}

std::string Limits::share(double limit_seconds, double seconds) const {
  if (limit_seconds <= 0 || seconds <= 0) return "-";
  return fmt::format("{:.0f} %", 100 * limit_seconds / seconds);
}

std::vector<std::string> Limits::header(std::vector<std::string> names) const {
  if (known()) names.emplace_back("of limit");
  return names;
}

std::vector<std::string> Limits::row(std::vector<std::string> cells, double limit_seconds,
                                     double seconds) const {
  if (known()) cells.push_back(share(limit_seconds, seconds));
  return cells;
}

}  // namespace hone::tool
