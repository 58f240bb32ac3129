//! Programs that reach the network, and those that look at a machine's services.

use crate::policy::command::options::Options;

/// Only ask something of somebody, whatever they are given.
pub(in crate::policy::command) const ASKING: &str =
    "dig drill getent host mtr nslookup ping ping6 tracepath traceroute whois";

/// Open connections for whatever is at their ends, run scripts or write files as they are told.
pub(in crate::policy::command) const OPENING: &str = "\
    aria2c arp ftp http https lftp mail nc ncat netcat nmap openssl rclone s3cmd socat telnet tftp \
    websocat xh";

pub(in crate::policy::command) const CURL: Options = Options {
    letters: "sSLfkiIvgN#046GjnqlROJX:H:d:F:u:A:e:b:m:x:T:w:r:z:y:Y:o>D>c>",
    names: "silent show-error location fail fail-with-body insecure include head verbose no-buffer \
            progress-bar no-progress-meter ipv4 ipv6 get compressed globoff request= header= \
            data= data-raw= data-binary= data-urlencode= json= form= form-string= user= \
            user-agent= referer= cookie= max-time= connect-timeout= retry= retry-delay= \
            retry-max-time= retry-all-errors proxy= upload-file= write-out= range= url= \
            http1.1 http2 http3 tlsv1.2 tlsv1.3 max-redirs= limit-rate= max-filesize= parallel \
            create-dirs remote-name remote-name-all remote-header-name output> output-dir> \
            dump-header> cookie-jar> trace> trace-ascii> libcurl> stderr> etag-save> hsts> \
            alt-svc>",
};

pub(in crate::policy::command) const WGET: Options = Options {
    letters: "qvcSNrkpxd46nHLEKmT:t:w:Q:l:A:R:D:I:X:U:O>P>o>a>",
    names: "quiet verbose no-verbose continue server-response timestamping recursive \
            convert-links page-requisites no-parent no-clobber timeout= tries= wait= quota= \
            level= accept= reject= domains= user-agent= header= no-check-certificate spider \
            show-progress progress= content-on-error method= body-data= post-data= user= \
            password= max-redirect= mirror limit-rate= output-document> directory-prefix> \
            output-file> append-output> warc-file> warc-tempdir> save-cookies> hsts-file> \
            rejected-log>",
};

pub(in crate::policy::command) const SCP: Options =
    Options { letters: "rpqCv46BTOR3P:i:c:l:J:", names: "" };

pub(in crate::policy::command) const RSYNC: Options = Options {
    letters: "avzrlptgoDnPhuxHAXSRbicLKkmqWC",
    names: "archive verbose compress recursive links perms times group owner dry-run progress \
            partial human-readable update one-file-system hard-links acls xattrs sparse relative \
            backup itemize-changes checksum copy-links prune-empty-dirs quiet stats info= \
            exclude= include= exclude-from= include-from= filter= files-from= ignore-existing \
            existing size-only bwlimit= timeout= chmod= chown= delete delete-after \
            delete-before delete-during delete-delay delete-excluded remove-source-files \
            inplace append cvs-exclude max-size= min-size= modify-window= no-perms no-owner \
            no-group no-times safe-links copy-dest= link-dest= compare-dest=",
};

pub(in crate::policy::command) const JOURNALCTL: Options = Options {
    letters: "abefklqrxNu:n:S:U:o:p:t:g:",
    names: "all boot? follow dmesg list-boots no-pager quiet reverse unit= user-unit= lines= \
            since= until= output= priority= identifier= grep= case-sensitive? no-hostname \
            no-full full catalog utc disk-usage user system fields",
};

pub(in crate::policy::command) const DMESG: Options = Options {
    letters: "HkLTtxuewrdf:l:",
    names: "human kernel color? ctime notime decode userspace reltime follow raw facility= level= \
            nopager since= until=",
};

pub(in crate::policy::command) const SYSTEMCTL: Options = Options {
    letters: "alqn:o:p:t:",
    names: "all full quiet lines= output= property= type= state= no-pager user system plain \
            no-legend failed value",
};

pub(in crate::policy::command) const SOCKETS: Options = Options {
    letters: "tulnpaeoimsH46xwrNbcg",
    names: "tcp udp listening numeric processes all extended options info memory summary \
            no-header ipv4 ipv6 unix raw resolve route interfaces programs",
};

/// Words with which `ip` only shows.
pub(in crate::policy::command) const IP: &str = "\
    -4 -6 -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -s -stats a \
    addr address dev get l link list ls n neigh neighbour r route rule show";

/// What programs that speak to a place where code is kept only show.
pub(in crate::policy::command) const HOSTED: &str = "\
    issue:list issue:status issue:view label:list mr:list mr:view pr:checks pr:diff pr:list pr:status \
    pr:view release:list release:view repo:list repo:view run:list run:view search:code \
    search:issues search:prs search:repos workflow:list workflow:view";

pub(in crate::policy::command) const HOSTED_OPTIONS: Options = Options {
    letters: "R:L:s:l:a:A:S:q:t:B:H:cv",
    names: "repo= limit= state= label= assignee= author= search= json= jq= template= comments \
            base= head= patch name-only color= log log-failed job= exit-status verbose",
};
