# Builds vx from the repository that this file is in, so that it works from any checkout and from a tap of it:
#
#   brew tap --custom-remote vx/vx /path/to/the/checkout && brew install --HEAD vx/vx/vx
#
# A stable block (url, sha256) joins it with the first published release.
class Vx < Formula
  desc "Wake an idle coding agent the moment its work is done"
  license "MIT"
  head "file://#{File.expand_path("..", __dir__)}", using: :git

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w -X main.release=#{version}"), "./cmd/vx"
    generate_completions_from_executable(bin/"vx", "completion")
  end

  def caveats
    <<~EOS
      In a project: vx init, then vx doctor. The Stop hook finds vx in Homebrew's folder by itself.
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/vx version")
    ENV["VEXILLUM_HOME"] = testpath/"state"
    mkdir "project"
    cd "project" do
      system bin/"vx", "wake", "send", "--title", "brewed"
      assert_match "brewed", shell_output("#{bin}/vx wake list")
    end
  end
end
