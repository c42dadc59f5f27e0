// The training loop, and the functions of cost/net/torch_api.h.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>

#include "hone/base/hash.h"
#include "hone/learn/torch/batches.h"
#include "hone/learn/torch/guarded.h"
#include "hone/learn/torch/labels.h"
#include "hone/learn/torch/meta_net.h"
#include "hone/learn/torch/optimizer.h"
#include "hone/learn/torch/parallel_net.h"

namespace hone::learn::torch_module {
namespace {

constexpr uint64_t kStateMark = 0x3453544e45544e48;  // with the layout of a state, and the labels

double now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

// Tensors come and go by the million: the allocator must keep their memory. The last one is for
// that of threads, which comes in pieces of 64 MB: they are given back unless so much is to be
// free.
void keep_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

// Before anything of libtorch: it uses one thread for each of ours.
void prepare() {
  keep_memory();
  at::set_num_threads(1);
}

// Elsewhere libtorch has a batch as a whole.
int threads_of(const Place& place, const HoneTorchOptions& options) {
  return place.generic ? 1 : options.threads;
}

// Returns a hash of what a saved state depends on: the sizes of everything, and the options.
uint64_t fingerprint(const HoneTorchNet& net, const HoneTorchRows& train,
                     const HoneTorchRows& validation, const HoneTorchOptions& options) {
  uint64_t hash = kStateMark;
  const auto add = [&](const auto& value) {
    hash = hash_combine(hash, hash_mix(static_cast<uint64_t>(value)));
  };
  for (int i = 0; i < net.num_nodes; ++i) add(net.nodes[i].op);
  for (int i = 0; i < net.num_parameters; ++i) {
    for (int d = 0; d < net.parameters[i].rank; ++d) add(net.parameters[i].dims[d]);
    add(net.parameters[i].frozen);
    add(net.parameters[i].meta_frozen);
  }
  // The constants normalise the inputs.
  for (int i = 0; i < net.num_constants; ++i) {
    const HoneTorchTensor& constant = net.constants[i];
    int64_t size = 1;
    for (int d = 0; d < constant.rank; ++d) size *= constant.dims[d];
    for (int64_t k = 0; k < size; ++k) add(std::bit_cast<uint32_t>(constant.values[k]));
  }
  for (const HoneTorchRows* rows : {&train, &validation}) {
    add(rows->num_rows), add(rows->num_groups);
    for (int64_t i = 0; i < rows->num_rows; ++i) {
      add(rows->speed[i] * 0x1p40);
      add(std::bit_cast<uint32_t>(rows->log_time[i]));
    }
  }
  for (const double value :
       {options.rate, options.last_rate, options.decay, options.clip, options.average,
        options.least_ratio, options.bound_weight, options.rank_weight})
    add(value * 0x1p40);
  for (const int value : {options.loss, options.epochs, options.batch, options.group,
                          options.cosine, options.patience})
    add(value);
  add(options.seed);
  const HoneTorchMetaOptions& meta = options.meta;
  add(meta.kind);
  if (meta.kind == kHoneTorchNoMeta) return hash;
  for (const int value : {meta.steps, meta.ways, meta.shots, meta.queries, meta.tasks, meta.batches,
                          meta.epochs, meta.patience})
    add(value);
  add(meta.rate * 0x1p40), add(meta.outer * 0x1p40);
  return hash;
}

// The options of Adam in meta-learning. What the training before has taught does not decay.
HoneTorchOptions meta_step_options(HoneTorchOptions options) {
  options.rate = options.meta.outer;
  options.decay = 0;
  return options;
}

class Trainer {
 public:
  Trainer(const HoneTorchNet& net, const HoneTorchRows& train, const HoneTorchRows& validation,
          const HoneTorchOptions& options)
      : net_(net),
        train_(train),
        validation_(validation),
        options_(options),
        place_(place_of(options)),
        workers_(threads_of(place_, options)),
        parameters_(make_parameters(net, place_)),
        parallel_(net, place_, parameters_, workers_),
        meta_net_(net, place_, options, workers_),
        meta_step_options_(meta_step_options(options)),
        train_reader_(net, train.inputs, train.num_rows),
        validation_reader_(net, validation.inputs, validation.num_rows),
        fingerprint_(fingerprint(net, train, validation, options)) {
    for (const at::Tensor& parameter : parameters_)
      best_.push_back(parameter.detach().to(at::kCPU, at::kFloat, false, true));
    optimizer_.emplace(parameters_, options);
  }

  int32_t run() {
    if (options_.state != nullptr) restore();
    const bool meta = options_.meta.kind != kHoneTorchNoMeta;
    while (!is_meta() && epochs_of(false) < options_.epochs && !is_stale(options_.patience) &&
           !is_out_of_time(meta ? 0.5 : 1)) {
      if (!run_epoch()) return kHoneTorchStopped;
    }
    if (meta && !run_meta()) return kHoneTorchStopped;
    for (int i = 0; i < net_.num_parameters; ++i) {
      const at::Tensor& best = best_[static_cast<size_t>(i)];
      std::copy_n(best.data_ptr<float>(), best.numel(), net_.parameters[i].values);
    }
    return kHoneTorchDone;
  }

 private:
  [[nodiscard]] bool is_meta() const { return !history_.empty() && history_.back().meta != 0; }

  [[nodiscard]] int epochs_of(bool meta) const {
    return static_cast<int>(std::count_if(history_.begin(), history_.end(), [&](const auto& epoch) {
      return (epoch.meta != 0) == meta;
    }));
  }

  // Whether the last epochs, of the same kind, were not better.
  [[nodiscard]] bool is_stale(int patience) const {
    if (patience <= 0 || validation_.num_rows == 0) return false;
    int since = 0;
    for (const HoneTorchEpoch& epoch : history_) since = epoch.best != 0 ? 0 : since + 1;
    return since >= patience;
  }

  [[nodiscard]] bool is_out_of_time(double share) const {
    double used = 0;
    for (const HoneTorchEpoch& epoch : history_) used += epoch.seconds;
    return options_.seconds > 0 && used >= share * options_.seconds;
  }

  // Returns false if it was stopped.
  bool run_meta() {
    if (!is_meta()) begin_meta();
    const HoneTorchMetaOptions& meta = options_.meta;
    const std::vector<MetaTask> judged = judged_tasks(validation_, meta, options_.seed);
    // At least one epoch: else the result would be a net without meta-learning.
    while (!is_meta() ||
           (epochs_of(true) < meta.epochs && !is_stale(meta.patience) && !is_out_of_time(1))) {
      if (!run_meta_epoch(judged)) return false;
    }
    return true;
  }

  // Starts from the best net so far. Other parameters may be learnt than before.
  void begin_meta() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const c10::NoGradGuard no_gradients;
      parameters_[i].copy_(best_[i]);
    }
    use_meta_optimizer();
  }

  void use_meta_optimizer() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad().reset();
      parameters_[i].requires_grad_(net_.parameters[i].meta_frozen == 0);
    }
    optimizer_.emplace(parameters_, meta_step_options_);
  }

  bool run_meta_epoch(const std::vector<MetaTask>& judged) {
    const auto epoch = static_cast<int>(history_.size()) + 1;
    const double start = now();
    const HoneTorchMetaOptions& meta = options_.meta;
    const uint64_t seed = hash_combine(options_.seed, static_cast<uint64_t>(epoch));
    HoneTorchEpoch done{.epoch = epoch, .rate = meta.outer, .meta = 1};
    for (int i = 0; i < meta.batches; ++i) {
      if (options_.stop != nullptr && options_.stop(options_.user) != 0) return false;
      const uint64_t drawn = hash_combine(seed, static_cast<uint64_t>(i));
      const std::vector<MetaTask> tasks = draw_tasks(train_, meta, drawn);
      const double loss =
          meta_net_.compute_gradients(train_reader_, train_, tasks, parameters_, drawn);
      TORCH_CHECK(std::isfinite(loss),
                  "the loss after adaptation is not a finite number: a lower rate of the "
                  "adaptation or of the batches may help");
      optimizer_->step(meta.outer, workers_);
      done.loss += loss / meta.batches;
    }
    judge_meta(judged, done);
    end_epoch(done, start);
    return true;
  }

  void judge_meta(const std::vector<MetaTask>& judged, HoneTorchEpoch& done) {
    std::vector<at::Tensor> result;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      result.push_back(
          optimizer_->result()[i].detach().requires_grad_(parameters_[i].requires_grad()));
    }
    done.plain_loss = done.adapted_loss = NAN;
    done.best = 1;
    if (!judged.empty()) {
      const AdaptedLoss loss = meta_net_.judge(validation_reader_, validation_, judged, result);
      done.plain_loss = loss.plain, done.adapted_loss = loss.adapted;
      for (const HoneTorchEpoch& earlier : history_)
        if (earlier.meta != 0 && !(done.adapted_loss < earlier.adapted_loss)) done.best = 0;
    }
    if (validation_.num_rows > 0) set_accuracy(result, done);
    if (done.best != 0) keep(result);
  }

  [[nodiscard]] double rate(double part) const {
    const double left = options_.cosine != 0 ? (1 + std::cos(M_PI * part)) / 2 : 1 - part;
    return options_.last_rate + (options_.rate - options_.last_rate) * left;
  }

  bool run_epoch() {
    const auto epoch = static_cast<int>(history_.size()) + 1;
    const double start = now();
    // Dropout depends on the place of the batch alone, so that a resumed training draws the same.
    const uint64_t seed = hash_combine(options_.seed, static_cast<uint64_t>(epoch));
    const std::vector<Batch> batches =
        make_batches(train_, options_.batch, options_.group, options_.seed, epoch);
    TORCH_CHECK(!batches.empty(), "no task has two schedules to compare");
    HoneTorchEpoch done{.epoch = epoch};
    for (size_t i = 0; i < batches.size(); ++i) {
      if (options_.stop != nullptr && options_.stop(options_.user) != 0) return false;
      const double part =
          (epoch - 1 + static_cast<double>(i) / static_cast<double>(batches.size())) /
          options_.epochs;
      done.rate = rate(part);
      done.loss += run_batch(batches[i], done.rate, hash_combine(seed, i)) /
                   static_cast<double>(batches.size());
    }
    judge(done);
    end_epoch(done, start);
    return true;
  }

  void end_epoch(HoneTorchEpoch& done, double start) {
    done.seconds = now() - start;
    history_.push_back(done);
    if (options_.progress != nullptr) options_.progress(options_.user, &done);
    if (options_.save != nullptr) save();
  }

  double run_batch(const Batch& batch, double rate, uint64_t seed) {
    const double loss = parallel_.compute_gradients(train_reader_, batch.rows,
                                                    labels_of(train_, batch), options_, seed);
    TORCH_CHECK(std::isfinite(loss), "the loss is not a finite number: a lower rate may help");
    optimizer_->step(rate, workers_);
    return loss;
  }

  // Without rows to judge by, the last parameters are the best.
  void judge(HoneTorchEpoch& done) {
    const c10::NoGradGuard no_gradients;
    const std::vector<at::Tensor>& result = optimizer_->result();
    done.best = 1;
    if (validation_.num_rows > 0) {
      set_accuracy(result, done);
      for (const HoneTorchEpoch& earlier : history_)
        if (earlier.pair_accuracy >= done.pair_accuracy) done.best = 0;
    }
    if (done.best != 0) keep(result);
  }

  void set_accuracy(const std::vector<at::Tensor>& result, HoneTorchEpoch& done) const {
    const PairAccuracy accuracy = pair_accuracy(validation_, scores(result), options_.least_ratio);
    done.pair_accuracy = accuracy.all;
    done.clear_pair_accuracy = accuracy.clear;
  }

  void keep(const std::vector<at::Tensor>& result) {
    const c10::NoGradGuard no_gradients;
    for (size_t i = 0; i < result.size(); ++i) best_[i].copy_(result[i]);
  }

  [[nodiscard]] std::vector<float> scores(const std::vector<at::Tensor>& parameters) const {
    std::vector<float> scores(static_cast<size_t>(validation_.num_rows));
    float* const outputs[std::size(kOutputs)] = {scores.data()};
    parallel_.evaluate(validation_reader_, parameters, outputs);
    return scores;
  }

  void save() const {
    std::string bytes;
    write_plain(fingerprint_, bytes);
    write_plain(static_cast<uint64_t>(history_.size()), bytes);
    for (const HoneTorchEpoch& epoch : history_) write_plain(epoch, bytes);
    optimizer_->write(bytes);
    write_tensors(best_, bytes);
    options_.save(options_.user, bytes.data(), std::ssize(bytes));
  }

  void restore() {
    std::string_view bytes(static_cast<const char*>(options_.state),
                           static_cast<size_t>(options_.state_size));
    uint64_t mark = 0, epochs = 0;
    TORCH_CHECK(read_plain(mark, bytes) && mark == fingerprint_,
                "the saved state is of another net, other data or other options");
    bool whole = read_plain(epochs, bytes);
    for (uint64_t i = 0; whole && i < epochs; ++i) {
      whole = read_plain(history_.emplace_back(), bytes);
      if (whole && options_.progress != nullptr) options_.progress(options_.user, &history_.back());
    }
    if (is_meta()) use_meta_optimizer();
    whole = whole && optimizer_->read(bytes) && read_tensors(best_, bytes) && bytes.empty();
    TORCH_CHECK(whole, "the saved state is cut short or damaged");
  }

  const HoneTorchNet& net_;
  const HoneTorchRows &train_, &validation_;
  const HoneTorchOptions& options_;
  Place place_;
  Workers workers_;
  std::vector<at::Tensor> parameters_;
  ParallelNet parallel_;
  MetaNet meta_net_;
  HoneTorchOptions meta_step_options_;
  std::optional<Optimizer> optimizer_;  // that of meta-learning is another one
  RowReader train_reader_, validation_reader_;
  uint64_t fingerprint_;
  std::vector<at::Tensor> best_;
  std::vector<HoneTorchEpoch> history_;
};

}  // namespace
}  // namespace hone::learn::torch_module

using namespace hone::learn::torch_module;

extern "C" {

__attribute__((visibility("default"))) int32_t hone_torch_version() { return kHoneTorchVersion; }

__attribute__((visibility("default"))) int32_t hone_torch_train(
    const HoneTorchNet* net, const HoneTorchRows* train, const HoneTorchRows* validation,
    const HoneTorchOptions* options, char* message, int64_t message_size) {
  return guarded(message, message_size, [&] {
    prepare();
    return Trainer(*net, *train, *validation, *options).run();
  });
}

__attribute__((visibility("default"))) int32_t hone_torch_gradients(
    const HoneTorchNet* net, const HoneTorchRows* rows, const HoneTorchOptions* options,
    double* loss, float* const* gradients, char* message, int64_t message_size) {
  return guarded(message, message_size, [&] {
    prepare();
    const Place place = place_of(*options);
    const std::vector<at::Tensor> parameters = make_parameters(*net, place);
    Workers workers(threads_of(place, *options));
    ParallelNet parallel(*net, place, parameters, workers);
    const Batch batch = whole_batch(*rows);
    *loss = parallel.compute_gradients(RowReader(*net, rows->inputs, rows->num_rows), batch.rows,
                                       labels_of(*rows, batch), *options, options->seed);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].grad().defined()) continue;
      const at::Tensor plain = parameters[i].grad().to(at::kCPU).contiguous();
      std::copy_n(plain.data_ptr<float>(), plain.numel(), gradients[i]);
    }
    return static_cast<int32_t>(kHoneTorchDone);
  });
}

__attribute__((visibility("default"))) int32_t hone_torch_adapt(const HoneTorchNet* net,
                                                                const HoneTorchRows* rows,
                                                                const HoneTorchOptions* options,
                                                                double* loss, char* message,
                                                                int64_t message_size) {
  return guarded(message, message_size, [&] {
    prepare();
    const Place place = place_of(*options);
    Workers workers(1);
    const MetaNet meta_net(*net, place, *options, workers);
    std::vector<at::Tensor> parameters = make_parameters(*net, place);
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i].requires_grad_(net->parameters[i].meta_frozen == 0);
    const RowReader reader(*net, rows->inputs, rows->num_rows);
    const LossOf loss_of_rows = meta_net.loss_on(reader, *rows, whole_batch(*rows), nullptr);
    *loss = loss_of_rows(parameters, 0).item<double>();
    const HoneTorchMetaOptions& meta = options->meta;
    const std::vector<at::Tensor> adapted =
        adapt(parameters, loss_of_rows, {meta.steps, meta.rate, false});
    for (size_t i = 0; i < adapted.size(); ++i) {
      const at::Tensor plain = adapted[i].detach().to(at::kCPU).contiguous();
      TORCH_CHECK(at::isfinite(plain).all().item<bool>(),
                  "weights after adaptation are not finite: a lower rate may help");
      std::copy_n(plain.data_ptr<float>(), plain.numel(), net->parameters[i].values);
    }
    return static_cast<int32_t>(kHoneTorchDone);
  });
}

__attribute__((visibility("default"))) int32_t hone_torch_forward(
    const HoneTorchNet* net, int64_t num_rows, const float* const* inputs, float* const* outputs,
    char* message, int64_t message_size) {
  return guarded(message, message_size, [&] {
    prepare();
    const std::vector<at::Tensor> parameters = make_parameters(*net, {});
    Workers workers(1);
    ParallelNet(*net, {}, parameters, workers)
        .evaluate(RowReader(*net, inputs, num_rows), parameters, outputs);
    return static_cast<int32_t>(kHoneTorchDone);
  });
}

}  // extern "C"
