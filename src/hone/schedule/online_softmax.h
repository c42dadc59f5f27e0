// schedule/online_softmax.h - attention in tiles of keys, which does not store the scores (Milakov
// and Gimelshein, "Online normalizer calculation for softmax"; Dao et al., FlashAttention).
//
// From the stages over all keys n
//   most = max of s[n];  w[n] = f(s[n], most);  total = sum of w[n];  sums[d] = sum of w[n] v[n, d]
// the step makes, for tiles t of keys,
//   most[t] = max of the tile's s;  w[t, n] = f(s[n], most[t]);  total[t], part[t, d]: sums over it
//   sums: run' = max(run, most[t]);  total = total f(run, run') + total[t] f(most[t], run')
//                                    sums  = sums  f(run, run') + part[t] f(most[t], run')
// The result is the same if f(x, y) f(y, z) = f(x, z), as for a power of x - y. If all scores of a
// row or tile are hidden (minus infinity), their maximum is the least finite number. If terms end
// early (compute::Stage::until), so does the loop over tiles; a tile is always computed whole. Only
// the last one may have fewer keys: nothing behind the last key is read, and it has separate code
// (Loop::peel), so that whole tiles have no tests. Values above the largest finite number over the
// keys of a tile may overflow in a tile whose weight is zero in the end.
//
// If the step says that tiles are whole, all have code alike: keys beyond the last one have scores
// of minus infinity and zeros for values. The stages that compute the scores are ones of tiles,
// too. If the values are floats of 16 bits, so are the weights, as matrix instructions multiply
// elements of one type. Parts of the tiles can be joined by themselves first (the step rfactor
// along t).
#pragma once

#include "hone/schedule/state.h"

namespace hone::schedule {

// Applies the step. It is illegal unless the stages are those above, the step names the last one,
// and the number of keys in a tile is between 1 and all of them; whole tiles may have more.
[[nodiscard]] Status online_softmax(const OnlineSoftmax& step, State& state);

}  // namespace hone::schedule
