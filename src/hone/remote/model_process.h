// remote/model_process.h - the process in which a server runs a tuner's model, so that a model that
// crashes or hangs costs that process. The server passes calls on to it (model_host.h).
#pragma once

namespace hone::remote {

// Answers calls on the socket `fd` until it is closed, and returns the exit status.
int model_main(int fd);

}  // namespace hone::remote
