/*
 * origin.h - whether a request comes from our own page, asked of what a browser says about it.
 *
 * A bearer token cannot be sent by somebody else's page; a cookie is, by itself.  So these are
 * asked when a cookie is to count, and when the page is given out.
 */
#ifndef CX_SERVER_ORIGIN_H
#define CX_SERVER_ORIGIN_H

#include "server/service.h"

/*
 * The Host header names us: an address in numbers, "localhost", or one of the service's names.  A
 * name that somebody else owns and lets point here (DNS rebinding) is none of these.  Over TLS the
 * certificate says so already.
 */
bool cx_origin_host(const cx_service *service, const cx_request *request);
/*
 * A request that brings a cookie comes from our own page.  Reading: nobody else's page made it
 * (Sec-Fetch-Site).  Changing something: it also has the header X-Cortex-Page, which no form can
 * send, and says where it comes from (Origin, or Sec-Fetch-Site).
 */
bool cx_origin_is_own_page(const cx_request *request);

#endif
