// remote/grpc/relay.h - the process that has a tuner's connection to a server elsewhere. A tuner
// starts it (remote/link.h) and exchanges messages with it by a socket, so a program that tunes is
// linked without gRPC, and nothing that happens to the connection happens to the tuner.
#pragma once

namespace hone::remote {

// Connects as the first message on the socket `fd` says, passes messages on in both directions
// until one side ends, and returns the exit status. Why a connection ended is its last message.
int relay_main(int fd);

}  // namespace hone::remote
