// The machine: what every statement's features say of it, and how its cores share.
#include "hone/analysis/features.h"
#include "hone/cost/inputs/input_parts.h"

namespace hone::cost {

void write_device(const target::Cpu& target, int threads, RowWriter& out) {
  const std::vector<std::string>& names = analysis::feature_names();
  out.copy(std::span(names).last(analysis::kMachineFeatures),
           analysis::machine_features(target, threads));
  out.count("cores", target.cores);
  out.flag("broadcast_operand", target.broadcast_operand);
  static constexpr std::string_view kShared[] = {"l1_shared_by", "l2_shared_by", "l3_shared_by"};
  for (size_t i = 0; i < std::size(kShared); ++i)
    out.count(kShared[i], i < target.caches.size() ? target.caches[i].shared_by : 0);
  out.count("line_bytes", target.caches.empty() ? 0 : target.caches[0].line_bytes);
}

}  // namespace hone::cost
