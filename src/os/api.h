/*
 * os - the operating system: untrusted folders, processes, sockets, resource limits, settings
 * files, libraries loaded on demand.
 *
 * Knows nothing of formats and nothing of agents. All system calls beyond plain files are here.
 */
#ifndef CX_OS_API_H
#define CX_OS_API_H

#include "os/confine.h"
#include "os/folder.h"
#include "os/forward/forward.h"
#include "os/gzip.h"
#include "os/http/http_client.h"
#include "os/http/http_post.h"
#include "os/http/http_stream.h"
#include "os/http/http_upgrade.h"
#include "os/ip.h"
#include "os/library.h"
#include "os/machine.h"
#include "os/net.h"
#include "os/notify.h"
#include "os/poller.h"
#include "os/proc.h"
#include "os/relay.h"
#include "os/settings.h"
#include "os/share.h"
#include "os/spawn.h"
#include "os/stream.h"
#include "os/tcp.h"
#include "os/http/tls.h"
#include "os/zstd.h"

#endif
