// Package mail carries notices to owners as e-mail, through the mail server that the operator names.
//
// A message is plain text: what happened, the account, and a link to the page that shows more. Its header holds
// nothing that an owner has written, and the address is one that signs in. The connection is encrypted, by
// STARTTLS or from its first byte, and the server's certificate is checked; without that nothing is sent.
//
// Without the server's acceptance a message is sent again, under the same Message-ID.
package mail
