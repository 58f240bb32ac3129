//! A home on a network file system, as far as the kernel can tell: a file system in user space of
//! the kind `sshfs`, served by this test and mounted for one command only.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mainstay_testkit::capability::Capability;

use super::home::{Home, Ran};
use super::restoring::old_with_new_backup;

/// Mounts what stands behind standard input, then becomes the command.
const SCRIPT: &str = r#"mount -i -t fuse.sshfs \
    -o "fd=0,rootmode=40000,user_id=$(id -u),group_id=$(id -g)" sshfs "$1" &&
    shift && exec "$@" </dev/null"#;

/// Runs the binary with the directory `network` on such a file system. Returns `None` if this machine
/// has no device for it, and may lack it.
fn on_network(home: &Home, line: &str) -> Option<Ran> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    // The judgement itself is tested without a mount, beside the code.
    if !Capability::Fuse.require(device.is_ok()) {
        return None;
    }
    let device = device.unwrap();
    let _ = std::fs::create_dir(home.path("network"));
    let served = device.try_clone().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    // It ends when the mount does, with the command's namespace.
    let server = {
        let over = over.clone();
        std::thread::spawn(move || serve(served, &over))
    };
    let binary = home.command(line.split(' '));
    let mut command = Command::new("unshare");
    command.args(["-m", "--", "sh", "-c", SCRIPT, "on-network"]).arg(home.path("network"));
    command.arg(binary.get_program()).args(binary.get_args());
    command.envs(binary.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(home.path("")).stdin(Stdio::from(device));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // From here on the server alone has the device: if it fails, so does the mount, and nobody
    // waits for ever.
    drop(command);
    let output = child.wait_with_output().unwrap();
    over.store(true, Ordering::SeqCst);
    server.join().unwrap();
    Some(Ran::of(&output, &home.path("").canonicalize().unwrap()))
}

/// Serves one empty directory.
fn serve(mut device: File, over: &AtomicBool) {
    const DIRECTORY_MODE: u32 = 0o40_700;
    let mut request = vec![0; 1 << 20];
    loop {
        let length = match device.read(&mut request) {
            Ok(length) => length,
            // Nothing is mounted yet.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let number = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().unwrap());
        assert!(length >= 40, "a request has a header");
        let unique = &request[8..16];
        let answer: Result<Vec<u8>, i32> = match number(4) {
            // To forget is not answered.
            2 | 42 => continue,
            // What is looked up is not there.
            1 => Err(-2),
            // Attributes, valid for a while.
            3 => {
                let mut attributes = vec![0; 104];
                attributes[0] = 60;
                attributes[16] = 1;
                attributes[76..80].copy_from_slice(&DIRECTORY_MODE.to_le_bytes());
                attributes[80] = 2;
                Ok(attributes)
            }
            // Space.
            17 => {
                let mut space = vec![0; 80];
                for at in [0, 8, 16, 24, 32] {
                    space[at..at + 8].copy_from_slice(&(1_u64 << 30).to_le_bytes());
                }
                for at in [40, 48] {
                    space[at..at + 4].copy_from_slice(&4096_u32.to_le_bytes());
                }
                space[44] = 255;
                Ok(space)
            }
            // The greeting: version 7.31.
            26 => {
                let mut greeting = vec![0; 64];
                greeting[0] = 7;
                greeting[4] = 31;
                greeting[20..24].copy_from_slice(&4096_u32.to_le_bytes());
                Ok(greeting)
            }
            // Everything else is not known here.
            _ => Err(-38),
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (error, Vec::new()),
        };
        let mut reply = u32::try_from(16 + body.len()).unwrap().to_le_bytes().to_vec();
        reply.extend(i32::to_le_bytes(error));
        reply.extend(unique);
        reply.extend(body);
        if device.write_all(&reply).is_err() {
            return;
        }
    }
}

#[test]
fn a_store_is_not_made_on_a_network_file_system() {
    let home = old_with_new_backup();
    for line in ["--store network/store.db restore backup", "store copy --to network/store.db"] {
        let Some(ran) = on_network(&home, line) else { return };
        ran.refused(1, "is on a network file system (fuse.sshfs)");
        assert!(ran.stderr.contains("--store postgres://"), "{ran}");
    }
}

#[test]
fn doctor_sees_a_home_on_a_network_file_system() {
    let home = Home::new();
    let Some(ran) = on_network(&home, "--home network doctor") else { return };
    assert_eq!(ran.code, Some(1), "{ran}");
    let problem = "problem  disk: network is on a network file system (fuse.sshfs)";
    assert!(ran.stdout.contains(problem), "{ran}");
}
