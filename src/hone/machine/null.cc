#include "hone/machine/null.h"

namespace hone::machine {
namespace {

Status no_device() { return error(Code::kUnsupported, "a null machine runs no models"); }

class NullTimer final : public ModelTimer {
 public:
  [[nodiscard]] Result<std::vector<std::vector<double>>> time_in_turns(
      const std::vector<std::string>&, int, double) const override {
    return no_device();
  }
  [[nodiscard]] Result<std::unique_ptr<TimedModel>> load(const artifact::ArtifactSpec&,
                                                         int) const override {
    return no_device();
  }
};

class NullConditions final : public Conditions {
 public:
  [[nodiscard]] measure::CoreWatch::Look core_look(int) const override { return {}; }
  [[nodiscard]] measure::HostMonitor::Source load() const override {
    return [] { return std::nullopt; };
  }
  [[nodiscard]] bool stays_in_cache(int64_t) const override { return true; }
  [[nodiscard]] Result<trial::Roofline> roofline(const target::Target&,
                                                 const measure::RooflineOptions&) const override {
    return no_device();
  }
};

}  // namespace

Result<std::unique_ptr<measure::Runner>> NullMachine::make_runner(const measure::WorkerOptions&,
                                                                  const target::Target&) const {
  return std::unique_ptr<measure::Runner>(
      std::make_unique<measure::NullRunner>(cost_, wait_seconds_));
}

const ModelTimer& NullMachine::models() const {
  static const NullTimer timer;
  return timer;
}

const Conditions& NullMachine::conditions() const {
  static const NullConditions conditions;
  return conditions;
}

}  // namespace hone::machine
