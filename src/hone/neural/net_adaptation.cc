#include "hone/neural/net_adaptation.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/cost/net/family.h"
#include "hone/cost/net/head.h"
#include "hone/cost/net/head_fit.h"
#include "hone/cost/net/torch_library.h"
#include "hone/neural/net_training_set.h"
#include "hone/neural/restored_net.h"

namespace hone {
namespace {

namespace net = cost::net;

constexpr size_t kMinimum = 16;  // measurements before a net learns for the first time
constexpr size_t kEvery = 16;    // new ones between two times, or ...
constexpr size_t kShare = 8;     // ... this part of all

// How a net that meta-learning made wants to be adapted: as it was when it learnt. There is none in
// files of other nets.
Result<std::optional<net::MetaTraining>> meta_of(const NetFile& file, const std::string& name) {
  const std::string kind = note_of(file, "meta");
  if (kind.empty()) return std::optional<net::MetaTraining>();
  const Result<net::MetaTraining> meta = net::parse_meta(kind, "", note_of(file, "meta_options"));
  if (!meta.ok()) return invalid("{}: its meta-learning: {}", name, meta.status().message());
  return std::optional(*meta);
}

// When it is time to learn. The more there is, the less a few more change.
class Pace {
 public:
  explicit Pace(size_t minimum = kMinimum) : minimum_(minimum) {}
  void add() { ++fresh_; }
  bool due(size_t all) {
    if (all < minimum_ || fresh_ < std::max(std::min(kEvery, minimum_), all / kShare)) return false;
    fresh_ = 0;
    return true;
  }

 private:
  size_t minimum_;
  size_t fresh_ = 0;
};

class HeadAdaptation : public NetAdaptation {
 public:
  explicit HeadAdaptation(NetFile with_head)
      : compiled_(std::move(with_head)), fit_(compiled_.card.log_seconds_per_score) {}

  [[nodiscard]] const NetFile& compiled() const override { return compiled_; }
  [[nodiscard]] Result<NetFile> compiled_with_head() const override { return compiled_; }

  void add(const NetObservation& observation) override {
    fit_.add({observation.task,
              observation.seconds,
              observation.score,
              {observation.head.begin(), observation.head.end()}});
    pace_.add();
  }

  [[nodiscard]] Result<bool> learn() override {
    if (!pace_.due(fit_.samples())) return false;
    fit_.fit();
    return true;
  }

  [[nodiscard]] double change(std::span<const float> head) const override {
    return fit_.change(head);
  }

 private:
  NetFile compiled_;
  net::HeadFit fit_;
  Pace pace_;
};

// Multiplications of one candidate.
double work_of(const net::Net& net) {
  double work = 0;
  for (const net::Node& node : net.nodes) {
    if (node.op != net::Op::kMatmul) continue;
    const auto inner = net.nodes[static_cast<size_t>(node.inputs[0])].dims.back();
    work += static_cast<double>(net::element_count(node.dims) * inner);
  }
  return work;
}

// Training takes about three times as much as a prediction.
constexpr double kWork = 1.5e9;  // multiplications of one learn(): some 0.1 s of a core
constexpr double kLeastRows = 64, kMostRows = 512, kMostEpochs = 4;
constexpr int kBatch = 128;
constexpr double kRateShare = 0.5;  // of the rate by which the family is trained
constexpr uint64_t kScratchSeed = 1;
// A net without knowledge needs more of everything: some 1 s of a core each time.
constexpr double kScratchWork = 8 * kWork, kMostScratchEpochs = 30;

class WeightsAdaptation : public NetAdaptation {
 public:
  // `momentum`: the part of the twin that is kept each time; none: there is no twin. A net that
  // meta-learning made starts each time from its twin, which without momentum stays. `scratch`: the
  // weights of the file are replaced by random ones, and what it says of meta-learning is left out.
  static Result<std::unique_ptr<NetAdaptation>> make(const NetFile& file, net::Net net,
                                                     const std::string& name,
                                                     std::optional<double> momentum, bool scratch,
                                                     const std::string& torch) {
    HONE_ASSIGN_OR_RETURN(const net::Family* family, net::find_family(file.family));
    HONE_ASSIGN_OR_RETURN(net::NetTraining training, net::training_of(family->recipe));
    if (const Result<net::Loss> loss = net::parse_loss(note_of(file, "loss")); loss.ok())
      training.loss = *loss;
    HONE_ASSIGN_OR_RETURN(const std::optional<net::MetaTraining> meta, meta_of(file, name));
    training.meta = scratch ? net::MetaTraining() : meta.value_or(net::MetaTraining());
    if (training.meta.last) training.meta_trained.assign(family->last.begin(), family->last.end());
    training.library = torch;
    if (scratch)
      net::initialise(net, kScratchSeed);
    else
      training.rate *= kRateShare;
    training.last_rate = training.rate;
    training.average = 0;
    training.decay = 0;  // what few rows do not speak against stays
    const double rows = (scratch ? kScratchWork : kWork) / (3 * work_of(net));
    const double picked = std::clamp(rows, kLeastRows, kMostRows);
    training.batch = kBatch;
    training.epochs = static_cast<int>(
        std::clamp(rows / picked, 1.0, scratch ? kMostScratchEpochs : kMostEpochs));
    return std::unique_ptr<NetAdaptation>(new WeightsAdaptation(
        file, std::move(net), training, static_cast<size_t>(picked), momentum));
  }

  [[nodiscard]] const NetFile& compiled() const override { return compiled_; }
  [[nodiscard]] Result<NetFile> compiled_with_head() const override {
    HONE_ASSIGN_OR_RETURN(const net::Net with_head, net::with_head(net_));
    NetFile file = compiled_;
    file.bytes = format_net(with_head, file.card, NetWeights::kInputs);
    return file;
  }
  [[nodiscard]] std::span<const net::Parameter> weights() const override { return net_.parameters; }

  void add(const NetObservation& observation) override {
    samples_.add(observation);
    pace_.add();
  }

  [[nodiscard]] Result<bool> learn() override {
    if (!pace_.due(samples_.size())) return false;
    ++training_.seed;
    const net::NetRows rows = samples_.pick(net_, rows_, training_.seed);
    if (rows.num_tasks() == 0) return false;
    if (momentum_ || training_.meta.wanted()) start_from_twin();
    if (training_.meta.wanted())
      HONE_RETURN_IF_ERROR(net::adapt(net_, rows, training_));
    else
      HONE_RETURN_IF_ERROR(net::train(net_, rows, net::no_rows(net_), training_).status());
    if (momentum_) move_twin();
    return true;
  }

 private:
  WeightsAdaptation(const NetFile& file, net::Net net, net::NetTraining training, size_t rows,
                    std::optional<double> momentum)
      : compiled_(file),
        net_(std::move(net)),
        training_(std::move(training)),
        rows_(rows),
        momentum_(momentum),
        twin_(net_.parameters),
        pace_(training_.meta.wanted()
                  ? std::min(kMinimum, static_cast<size_t>(std::max(2, training_.meta.shots)))
                  : kMinimum) {
    compiled_.bytes = format_net(net_, file.card, NetWeights::kInputs);
  }

  // In place: compiled code reads them there.
  void start_from_twin() {
    for (size_t i = 0; i < twin_.size(); ++i)
      std::copy(twin_[i].values.begin(), twin_[i].values.end(), net_.parameters[i].values.begin());
  }

  void move_twin() {
    const auto kept = static_cast<float>(*momentum_);
    for (size_t i = 0; i < twin_.size(); ++i) {
      for (size_t k = 0; k < twin_[i].values.size(); ++k) {
        float& value = twin_[i].values[k];
        value = kept * value + (1 - kept) * net_.parameters[i].values[k];
      }
    }
  }

  NetFile compiled_;
  net::Net net_;
  net::NetTraining training_;
  size_t rows_;  // of one learn()
  std::optional<double> momentum_;
  std::vector<net::Parameter> twin_;
  NetTrainingSet samples_;
  Pace pace_;
};

constexpr double kMomentum = 0.99;  // of Pruner

}  // namespace

std::vector<std::string> adaptation_names() {
  return {"none", "head", "full", "momentum", "scratch"};
}

Status check_adaptation(const std::string& adapt, const std::string& torch) {
  const std::vector<std::string> names = adaptation_names();
  if (std::find(names.begin(), names.end(), adapt) == names.end())
    return invalid("--adapt: unknown value '{}', expected one of {}", adapt,
                   fmt::join(names, ", "));
  if (adapt == "none" || adapt == "head") return ok_status();
  return net::load_torch(torch).status();
}

Result<std::unique_ptr<NetAdaptation>> make_adaptation(const std::string& adapt,
                                                       const NetFile& file, const std::string& name,
                                                       const std::string& torch) {
  HONE_RETURN_IF_ERROR(check_adaptation(adapt, torch));
  if (adapt == "none") return std::unique_ptr<NetAdaptation>();
  if (adapt == "head") {
    HONE_ASSIGN_OR_RETURN(NetFile with_head, file_with_head(file, name));
    return std::unique_ptr<NetAdaptation>(std::make_unique<HeadAdaptation>(std::move(with_head)));
  }
  HONE_ASSIGN_OR_RETURN(net::Net net, restore_net(file, name));
  const std::optional<double> momentum =
      adapt == "momentum" ? std::optional(kMomentum) : std::nullopt;
  return WeightsAdaptation::make(file, std::move(net), name, momentum, adapt == "scratch", torch);
}

}  // namespace hone
