/*
 * origin.h - whether a request was made by our own page, decided from headers that browsers set.
 *
 * A page of another site cannot send a bearer token, but the browser attaches a cookie by itself.
 * So these checks apply when a cookie authenticates a request, and when the page is served.
 */
#ifndef CX_SERVER_ORIGIN_H
#define CX_SERVER_ORIGIN_H

#include "server/service.h"

/*
 * The Host header names this server: a numeric address, "localhost", or one of the service's names.
 * A name that another party owns and resolves to this machine (DNS rebinding) is none of these.
 * Over TLS the certificate decides already.
 */
bool cx_origin_host(const cx_service *service, const cx_request *request);
/*
 * A request that carries a cookie was made by our own page.  For a read: no other site's page made
 * it (Sec-Fetch-Site).  For a change: it also has the header X-Cortex-Page, which no form can send,
 * and names its origin (Origin, or Sec-Fetch-Site).
 */
bool cx_origin_is_own_page(const cx_request *request);

#endif
