// The training loop, and the functions of cost/net/torch_api.h.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <malloc.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>

#include "hone/base/hash.h"
#include "hone/learn/torch/batches.h"
#include "hone/learn/torch/optimizer.h"
#include "hone/learn/torch/parallel_net.h"

namespace hone::learn::torch_module {
namespace {

constexpr uint64_t kStateMark = 0x3353544e45544e48;  // with the layout of a state, and the labels

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

// Labels of some rows; NaN where there are none.
at::Tensor labels_of(const float* values, const std::vector<int64_t>& rows) {
  at::Tensor labels = at::full({std::ssize(rows)}, NAN);
  float* to = labels.data_ptr<float>();
  if (values == nullptr) return labels;
  for (const int64_t row : rows) *to++ = values[row];
  return labels;
}

Labels labels_of(const HoneTorchRows& all, const Batch& batch) {
  return {labels_of(all.speed, batch.rows), labels_of(all.log_time, batch.rows),
          labels_of(all.memory_bound, batch.rows), labels_of(all.core_bound, batch.rows),
          batch.group_sizes};
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
  return hash;
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
        optimizer_(parameters_, options),
        train_reader_(net, train.inputs, train.num_rows),
        validation_reader_(net, validation.inputs, validation.num_rows),
        fingerprint_(fingerprint(net, train, validation, options)) {
    for (const at::Tensor& parameter : parameters_)
      best_.push_back(parameter.detach().to(at::kCPU, at::kFloat, false, true));
  }

  int32_t run() {
    if (options_.state != nullptr) restore();
    while (static_cast<int>(history_.size()) < options_.epochs && !is_stale() &&
           !is_out_of_time()) {
      if (!run_epoch()) return kHoneTorchStopped;
    }
    for (int i = 0; i < net_.num_parameters; ++i) {
      const at::Tensor& best = best_[static_cast<size_t>(i)];
      std::copy_n(best.data_ptr<float>(), best.numel(), net_.parameters[i].values);
    }
    return kHoneTorchDone;
  }

 private:
  [[nodiscard]] bool is_stale() const {
    if (options_.patience <= 0 || validation_.num_rows == 0) return false;
    int since = 0;
    for (const HoneTorchEpoch& epoch : history_) since = epoch.best != 0 ? 0 : since + 1;
    return since >= options_.patience;
  }

  [[nodiscard]] bool is_out_of_time() const {
    double used = 0;
    for (const HoneTorchEpoch& epoch : history_) used += epoch.seconds;
    return options_.seconds > 0 && used >= options_.seconds;
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
    done.seconds = now() - start;
    history_.push_back(done);
    if (options_.progress != nullptr) options_.progress(options_.user, &done);
    if (options_.save != nullptr) save();
    return true;
  }

  double run_batch(const Batch& batch, double rate, uint64_t seed) {
    const double loss = parallel_.compute_gradients(train_reader_, batch.rows,
                                                    labels_of(train_, batch), options_, seed);
    TORCH_CHECK(std::isfinite(loss), "the loss is not a finite number: a lower rate may help");
    optimizer_.step(rate, workers_);
    return loss;
  }

  // Without rows to judge by, the last parameters are the best.
  void judge(HoneTorchEpoch& done) {
    const c10::NoGradGuard no_gradients;
    const std::vector<at::Tensor>& result = optimizer_.result();
    done.best = 1;
    if (validation_.num_rows > 0) {
      const PairAccuracy accuracy =
          pair_accuracy(validation_, scores(result), options_.least_ratio);
      done.pair_accuracy = accuracy.all;
      done.clear_pair_accuracy = accuracy.clear;
      for (const HoneTorchEpoch& earlier : history_)
        if (earlier.pair_accuracy >= done.pair_accuracy) done.best = 0;
    }
    if (done.best == 0) return;
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
    optimizer_.write(bytes);
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
    whole = whole && optimizer_.read(bytes) && read_tensors(best_, bytes) && bytes.empty();
    TORCH_CHECK(whole, "the saved state is cut short or damaged");
  }

  const HoneTorchNet& net_;
  const HoneTorchRows &train_, &validation_;
  const HoneTorchOptions& options_;
  Place place_;
  Workers workers_;
  std::vector<at::Tensor> parameters_;
  ParallelNet parallel_;
  Optimizer optimizer_;
  RowReader train_reader_, validation_reader_;
  uint64_t fingerprint_;
  std::vector<at::Tensor> best_;
  std::vector<HoneTorchEpoch> history_;
};

// f(), with an exception of libtorch as a message: its first line, without where it was thrown.
template <typename F>
int32_t guarded(char* message, int64_t size, const F& f) {
  try {
    return f();
  } catch (const c10::Error& e) {
    std::snprintf(message, static_cast<size_t>(size), "%s", e.what_without_backtrace());
  } catch (const std::exception& e) {
    std::snprintf(message, static_cast<size_t>(size), "%s", e.what());
  }
  return kHoneTorchFailed;
}

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
    Batch batch{all_rows(rows->num_rows), {}};
    for (int64_t g = 0; g < rows->num_groups; ++g)
      batch.group_sizes.push_back(rows->group_begin[g + 1] - rows->group_begin[g]);
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
