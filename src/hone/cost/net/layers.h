// cost/net/layers.h - the layers of which the families consist. `name` is the prefix of a layer's
// parameters.
#pragma once

#include "hone/cost/net/builder.h"
#include "hone/cost/net/family.h"

namespace hone::cost::net {

// Returns value * weight [from, to] + bias.
[[nodiscard]] Value linear(NetBuilder& b, const std::string& name, Value value, int64_t to,
                           double gain = 1);
[[nodiscard]] Value linear_relu(NetBuilder& b, const std::string& name, Value value, int64_t to);
// Returns value + relu(linear(value)).
[[nodiscard]] Value residual(NetBuilder& b, const std::string& name, Value value);
[[nodiscard]] Value layer_norm(NetBuilder& b, const std::string& name, Value value);

// Returns an input as (x - mean) * scale with the constants NAME.mean and NAME.scale, which
// training sets. It is limited to +-kFarthest, so that values far outside the training data cannot
// have large effects.
inline constexpr double kFarthest = 6;
[[nodiscard]] Value normalised(NetBuilder& b, std::string_view input);
// Returns the normalised statements, [-1, S, F], with their tags, [-1, S, F + 10], unless the
// family has an option "tags" that is 0. Rows of padding are zero.
[[nodiscard]] Value statements(NetBuilder& b, const Options& options);
// Returns the normalised "task", "measure", "decisions" and "device" side by side, [-1, N], those
// for which the family has an option of that name that is set; a node of -1 if there are none.
[[nodiscard]] Value context(NetBuilder& b, const Options& options);
// Adds a layer "context" of the context to each of the tokens [-1, N, H], if there is a context.
[[nodiscard]] Value with_context(NetBuilder& b, Value tokens, Value context, int64_t hidden);

// Returns a mask [-1, N] of 1 and 0 as a term of attention scores, [-1, 1, 1, N], of 0 and -1e9.
[[nodiscard]] Value attention_mask(NetBuilder& b, Value mask);
// Returns self-attention with `heads` heads and an output projection. `mask_term` is as above, or
// no node.
[[nodiscard]] Value attention(NetBuilder& b, const std::string& name, Value tokens, int64_t heads,
                              Value mask_term, double dropout);
// Encoder layers "encoder0", ...: attention and two linear layers, each with a residual connection
// and a normalisation after it (post-norm).
struct EncoderOptions {
  int64_t layers = 1;
  int64_t heads = 4;
  int64_t inner = 512;  // width between the two linear layers
  double dropout = 0;
};
[[nodiscard]] Value encoder(NetBuilder& b, Value tokens, Value mask_term,
                            const EncoderOptions& options);

// Multiplies [-1, N, H] or [-1, N] by the mask [-1, N].
[[nodiscard]] Value masked(NetBuilder& b, Value tokens, Value mask);
// Returns the sum of the tokens under the mask: [-1, N, H] to [-1, H].
[[nodiscard]] Value masked_sum(NetBuilder& b, Value tokens, Value mask);
[[nodiscard]] Value masked_mean(NetBuilder& b, Value tokens, Value mask);
// Returns tokens [-1, N, H] + vector [-1, H], which is the same for each token.
[[nodiscard]] Value add_to_each(NetBuilder& b, Value tokens, Value vector);

// Returns a layer of a graph convolution (Kipf and Welling 2017), relu(edges * tokens * weight +
// bias), [-1, N, to]. `edges` are the same for all, a constant [M, N], which is how the result may
// have more nodes than the M tokens, or each graph's own, [-1, N, N].
[[nodiscard]] Value graph_convolution(NetBuilder& b, const std::string& name, Value tokens,
                                      Value edges, int64_t to);
// Returns the sum of the tokens [-1, N, H], each times a number from 0 to 1 that a layer says of
// it, beside their maximum: [-1, 2 H]. Without a mask all count.
[[nodiscard]] Value weighted_sum_and_max(NetBuilder& b, const std::string& name, Value tokens,
                                         Value mask);

// Makes the last layer, "head": `outputs` numbers each [-1, 1] of a program [-1, H], or their sums
// over its tokens [-1, N, H] under `mask`. With `devices`, each output has as many columns, and the
// input "head" has their weights: a head for each device (MTL-TLP).
[[nodiscard]] std::vector<Value> heads(NetBuilder& b, Value value, int64_t devices,
                                       int64_t outputs = 1, Value mask = {});
// Returns the score with the option "analytic": the analytic model's speed of the program times a
// trained weight, plus `score`, which is then the error of that model.
[[nodiscard]] Value with_analytic(NetBuilder& b, Value score, const Options& options);
// Ends a net as TenSet's nets do: the context of the whole program is added to the sum of its
// statements [-1, H]; two residual layers and the heads follow.
[[nodiscard]] Value program_score(NetBuilder& b, Value sum, const Options& options, int64_t hidden);

// The option of families that can read the measure of the whole program.
inline constexpr FamilyOption kMeasure = {"measure", 0, 0, 1,
                                          "1: reads the parts of the analytic model, too"};
inline constexpr FamilyOption kDecisions = {"decisions", 0, 0, 1,
                                            "1: reads what was decided of the schedule, too"};
inline constexpr FamilyOption kAnalytic = {
    "analytic", 0, 0, 1, "1: corrects the analytic model's score instead of giving one"};
// The option of families that are compared without tags (ATFormer, table 6).
inline constexpr FamilyOption kTags = {"tags", 1, 0, 1,
                                       "0: does not read which operators statements belong to"};
// The option that every family has.
inline constexpr FamilyOption kDevices = {
    "devices", 0, 0, 8, "a last layer for each of so many devices; 0: one for all"};

// Returns the point of the simplex that is nearest to the last axis. Its gradient is that of
// sparsemax, as the support has none.
[[nodiscard]] Value sparsemax(NetBuilder& b, Value value);

}  // namespace hone::cost::net
