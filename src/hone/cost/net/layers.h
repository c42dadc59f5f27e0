// cost/net/layers.h - what the families are made of. `name` is the prefix of a layer's parameters.
#pragma once

#include "hone/cost/net/builder.h"
#include "hone/cost/net/family.h"

namespace hone::cost::net {

// value * weight [from, to] + bias.
[[nodiscard]] Value linear(NetBuilder& b, const std::string& name, Value value, int64_t to,
                           double gain = 1);
[[nodiscard]] Value linear_relu(NetBuilder& b, const std::string& name, Value value, int64_t to);
// value + relu(linear(value)).
[[nodiscard]] Value residual(NetBuilder& b, const std::string& name, Value value);
[[nodiscard]] Value layer_norm(NetBuilder& b, const std::string& name, Value value);

// An input, (x - mean) * scale with the constants NAME.mean and NAME.scale, which training sets,
// kept within +-kFarthest: what lies far outside of the training data must not run away.
inline constexpr double kFarthest = 6;
[[nodiscard]] Value normalised(NetBuilder& b, std::string_view input);
// The normalised statements, [-1, S, F], with their tags, [-1, S, F + 10], unless the family has an
// option "tags" that is 0; rows of padding are zero.
[[nodiscard]] Value statements(NetBuilder& b, const Options& options);
// The normalised "task", "measure", "decisions" and "device", side by side as far as the family has
// options of these names that are set: [-1, N]; a node of -1 if none is.
[[nodiscard]] Value context(NetBuilder& b, const Options& options);
// The tokens [-1, N, H] with a layer "context" of it added to each, if there is any.
[[nodiscard]] Value with_context(NetBuilder& b, Value tokens, Value context, int64_t hidden);

// A mask [-1, N] of 1 and 0 as a term of attention scores, [-1, 1, 1, N]: 0 and -1e9.
[[nodiscard]] Value attention_mask(NetBuilder& b, Value mask);
// Self-attention of `heads` heads with its output projection. `mask_term` as above, or no node.
[[nodiscard]] Value attention(NetBuilder& b, const std::string& name, Value tokens, int64_t heads,
                              Value mask_term, double dropout);
// Encoder layers "encoder0", ...: attention and two linear layers, each added and normalised
// (post-norm).
struct EncoderOptions {
  int64_t layers = 1;
  int64_t heads = 4;
  int64_t inner = 512;  // width between the two linear layers
  double dropout = 0;
};
[[nodiscard]] Value encoder(NetBuilder& b, Value tokens, Value mask_term,
                            const EncoderOptions& options);

// [-1, N, H] or [-1, N] times the mask [-1, N].
[[nodiscard]] Value masked(NetBuilder& b, Value tokens, Value mask);
// The sum of the tokens that the mask leaves: [-1, N, H] to [-1, H].
[[nodiscard]] Value masked_sum(NetBuilder& b, Value tokens, Value mask);
[[nodiscard]] Value masked_mean(NetBuilder& b, Value tokens, Value mask);
// tokens [-1, N, H] + vector [-1, H], the same for each.
[[nodiscard]] Value add_to_each(NetBuilder& b, Value tokens, Value vector);

// The last layer, "head": `outputs` numbers each [-1, 1] of a program [-1, H], or their sums over
// its tokens [-1, N, H] that `mask` leaves. With `devices` each output has as many columns, and the
// input "head" says how much each counts: a head for each device (MTL-TLP).
[[nodiscard]] std::vector<Value> heads(NetBuilder& b, Value value, int64_t devices,
                                       int64_t outputs = 1, Value mask = {});
// The score with the option "analytic": how fast the analytic model says the program is, times a
// weight that is learnt, plus `score`, which is then what that model gets wrong.
[[nodiscard]] Value with_analytic(NetBuilder& b, Value score, const Options& options);
// As TenSet's nets end: what is known of the whole program is added to the sum of its statements
// [-1, H], two residual layers and the heads follow.
[[nodiscard]] Value program_score(NetBuilder& b, Value sum, const Options& options, int64_t hidden);

// Options of families that read the whole program.
inline constexpr FamilyOption kMeasure = {"measure", 0, 0, 1,
                                          "1: reads the parts of the analytic model, too"};
inline constexpr FamilyOption kDecisions = {"decisions", 0, 0, 1,
                                            "1: reads what was decided of the schedule, too"};
inline constexpr FamilyOption kAnalytic = {
    "analytic", 0, 0, 1, "1: corrects the analytic model's score instead of giving one"};
// An option of families that are compared without (ATFormer, table 6).
inline constexpr FamilyOption kTags = {"tags", 1, 0, 1,
                                       "0: does not read which operators statements belong to"};
// An option of every family.
inline constexpr FamilyOption kDevices = {
    "devices", 0, 0, 8, "a last layer for each of so many devices; 0: one for all"};

// The point of the simplex that is nearest to the last axis. Its gradient is sparsemax's, as the
// support has none.
[[nodiscard]] Value sparsemax(NetBuilder& b, Value value);

}  // namespace hone::cost::net
