// Sockets that listen for connections.
#pragma once

#include <string>

namespace hctr::serve {

/// Opens a non-blocking socket that listens at an address. `port` 0: any free port. Errors: Error(io) naming address
/// and port.
int listen_at(const std::string& address, int port);
/// The port at which a socket listens.
int port_of(int socket);
/// Accepts the next connection, without waiting. Returns its non-blocking socket, or -1 if there is none. If the system
/// has no free file descriptors, waits 10 ms: pending connections are accepted later, when descriptors are free.
int accept_next(int listener);
/// Connections by HTTP whose descriptor is not below this number are refused, and connections by gRPC whose descriptor
/// is not below the second number. So gRPC has descriptors when HTTP has used all of its own. The remaining descriptors
/// are for files, other sockets, and the libraries that the service uses.
int most_http_descriptor();
int most_grpc_descriptor();

}  // namespace hctr::serve
